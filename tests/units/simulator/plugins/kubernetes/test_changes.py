"""What a change of an object does: each row of the table observed of the official plugin."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator

import pytest

from simulator.kube.client import KubeClient
from tests.support.plugin_changes import CONFIG_MAP, EMPTY_SECRET, PRIORITY_CLASS, ROWS, Row, changed, custom_kind
from tests.support.plugin_engine import Failed, KubernetesPlugin

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module", autouse=True)
def volcano_job(kube: KubeClient) -> Iterator[None]:
    kube.create(custom_kind())
    yield
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "jobs.batch.volcano.test")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_change(row: Row, plugin: KubernetesPlugin, namespace: str) -> None:
    before = copy.deepcopy(row.manifest)
    if "Class" not in row.token and "Binding" not in row.token and not row.token.endswith("PersistentVolume"):
        before["metadata"] = before["metadata"] | {"namespace": namespace}
    resource = plugin.create(f"kubernetes:{row.token}", f"it-{uuid.uuid4().hex[:6]}", before)
    try:
        unchanged = plugin.diff(resource, before)
        assert tuple(unchanged.replaces) == (row.replaces if row.manifest is EMPTY_SECRET else ())
        assert unchanged.changes == (unchanged.DIFF_SOME if unchanged.replaces else unchanged.DIFF_NONE), unchanged
        found = plugin.diff(resource, changed(before, row.path, row.value))
        assert found.changes == found.DIFF_SOME
        assert tuple(found.replaces) == row.replaces
        assert not found.deleteBeforeReplace, "an autonamed object is replaced without a gap"
        assert row.path.replace("stringData", "data") in found.detailedDiff
    finally:
        plugin.delete(resource)


def test_a_named_object_goes_before_its_replacement_comes(plugin: KubernetesPlugin, namespace: str) -> None:
    manifest = CONFIG_MAP | {"metadata": {"name": "fixed", "namespace": namespace}}
    resource = plugin.create("kubernetes:core/v1:ConfigMap", "cm", manifest)
    found = plugin.diff(resource, changed(manifest, "data.a", "2"))
    assert list(found.replaces) == ["data.a"]
    assert found.deleteBeforeReplace


def test_config_maps_can_be_made_mutable(kubeconfig: str, namespace: str) -> None:
    plugin = KubernetesPlugin(
        {"kubeconfig": kubeconfig, "enableConfigMapMutable": "true", "enableSecretMutable": "true"}
    )
    manifest = CONFIG_MAP | {"metadata": {"namespace": namespace}}
    resource = plugin.create("kubernetes:core/v1:ConfigMap", "cm", manifest)
    assert not plugin.diff(resource, changed(manifest, "data.a", "2")).replaces
    updated = plugin.update(resource, changed(manifest, "data.a", "2"))
    assert updated.state["data"] == {"a": "2"}
    plugin.close()


def test_the_value_of_a_priority_class_is_refused_by_the_server(plugin: KubernetesPlugin) -> None:
    resource = plugin.create("kubernetes:scheduling.k8s.io/v1:PriorityClass", "prio", PRIORITY_CLASS)
    try:
        with pytest.raises(Failed, match="is invalid: value: Forbidden: may not be changed in an update"):
            plugin.update(resource, changed(PRIORITY_CLASS, "value", 20))
    finally:
        plugin.delete(resource)
