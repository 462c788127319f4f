"""The table is recorded from the official plugin."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator

import pytest

from simulator.kube.client import KubeClient
from tests.support.plugin_changes import EMPTY_SECRET, ROWS, Row, changed, custom_kind
from tests.support.plugin_engine import KubernetesPlugin

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module", autouse=True)
def volcano_job(kube: KubeClient) -> Iterator[None]:
    kube.create(custom_kind())
    yield
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "jobs.batch.volcano.test")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_finds_a_change(row: Row, plugin: KubernetesPlugin, namespace: str) -> None:
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
