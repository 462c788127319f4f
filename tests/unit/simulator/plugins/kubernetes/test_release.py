"""`helm.v3.Release`: inputs, outputs, changes, failures, and what is left when Helm is killed."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.host import paths
from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes.options import GOES_ON
from simulator.plugins.kubernetes.release import records
from simulator.plugins.marshal import Properties
from tests.support.plugin_engine import Failed, KubernetesPlugin
from tests.support.waiting import eventually
from tests.unit.simulator.plugins.kubernetes.conftest import wait_for_record

pytestmark = pytest.mark.simulator

RELEASE = "kubernetes:helm.sh/v3:Release"


def test_an_unnamed_release_is_named_and_keeps_its_name(plugin: KubernetesPlugin, release: Properties) -> None:
    del release["name"]
    inputs = plugin.check(RELEASE, "rel", release)
    assert re.fullmatch(r"rel-[0-9a-f]{8}", inputs["name"])
    assert plugin.check(RELEASE, "rel", release, inputs)["name"] == inputs["name"]


def test_a_deployment_of_a_release_is_named_with_its_group(plugin: KubernetesPlugin, release: Properties) -> None:
    made = plugin.create(RELEASE, "rel", release | {"values": {"replicas": 1}, "skipAwait": True})
    assert made.state["resourceNames"] == {"ConfigMap/v1": ["rel"], "Deployment.apps/apps/v1": ["rel"]}


def test_a_new_version_of_a_local_chart_upgrades(plugin: KubernetesPlugin, release: Properties, chart: Path) -> None:
    made = plugin.create(RELEASE, "rel", release)
    manifest = chart / "Chart.yaml"
    manifest.write_text(manifest.read_text().replace("1.2.3", "1.2.4"))
    assert list(plugin.diff(made, release).diffs) == ["version"]
    assert plugin.update(made, release).state["status"]["version"] == "1.2.4"


def test_another_name_or_namespace_replaces(plugin: KubernetesPlugin, release: Properties) -> None:
    made = plugin.create(RELEASE, "rel", release)
    assert list(plugin.diff(made, release | {"name": "other"}).replaces) == ["name"]
    assert list(plugin.diff(made, release | {"namespace": "default"}).replaces) == ["namespace"]


def test_a_namespace_can_be_made_with_the_release(
    plugin: KubernetesPlugin, release: Properties, kube: KubeClient
) -> None:
    made = plugin.create(RELEASE, "rel", release | {"namespace": "made-by-helm", "createNamespace": True})
    assert made.id == "made-by-helm/rel"
    plugin.delete(made)
    kube.delete("v1", "Namespace", "made-by-helm")


def test_a_release_that_is_gone_is_deleted_only_where_a_failed_update_goes_on(
    plugin: KubernetesPlugin, release: Properties, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    plugin.delete(made)
    with pytest.raises(Failed, match="uninstall: Release not loaded: rel: release: not found"):
        plugin.delete(made)
    monkeypatch.setenv(GOES_ON, "true")
    going_on = KubernetesPlugin({"kubeconfig": kubeconfig})
    going_on.delete(made)
    going_on.close()


def test_a_release_that_a_killed_plugin_installed_is_taken_as_it_is_where_a_failed_update_goes_on(
    plugin: KubernetesPlugin, release: Properties, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    monkeypatch.setenv(GOES_ON, "true")
    going_on = KubernetesPlugin({"kubeconfig": kubeconfig})
    assert going_on.create(RELEASE, "rel", release).state == made.state
    with pytest.raises(Failed, match="cannot re-use a name that is still in use"):
        going_on.create(RELEASE, "rel", release | {"values": {"size": 6}})
    going_on.close()


def test_what_a_deletion_keeps_is_told(plugin: KubernetesPlugin, release: Properties, chart: Path) -> None:
    kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
    (chart / "templates" / "kept.yaml").write_text(kept)
    plugin.delete(plugin.create(RELEASE, "rel", release))
    (told,) = [line for line in plugin.engine.messages if line.startswith("Helm uninstall returned information: ")]
    assert "These resources were kept due to the resource policy:" in told
    assert "[ConfigMap] kept" in told


def test_cancel_does_not_reach_a_deletion(
    plugin: KubernetesPlugin, release: Properties, kube: KubeClient, namespace: str
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    kube.patch("v1", "ConfigMap", "rel", namespace, {"metadata": {"finalizers": ["test.invalid/holds"]}})
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(plugin.delete, made)
        try:
            eventually(
                lambda: kube.get("v1", "ConfigMap", "rel", namespace)["metadata"].get("deletionTimestamp"), "it goes"
            )
            plugin.cancel()
        finally:
            kube.patch("v1", "ConfigMap", "rel", namespace, {"metadata": {"finalizers": None}})
        deleting.result(60)
    assert records.latest(kube, namespace, "rel") is None


def test_cancel_leaves_a_failed_release(
    plugin: KubernetesPlugin, release: Properties, kube: KubeClient, namespace: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(plugin.create, RELEASE, "rel", release | {"values": {"replicas": 1}})
        try:
            wait_for_record(kube, namespace)
        finally:
            plugin.cancel()
        with pytest.raises(Failed) as failure:
            creating.result(60)  # helm itself would wait for 300 s
    assert failure.value.partial is not None
    record = records.latest(kube, namespace, "rel")
    assert record is not None
    assert record.status == "failed"


def test_a_chart_tells_the_scope_of_its_kinds(plugin: KubernetesPlugin, release: Properties, chart: Path) -> None:
    crds = chart / "crds"
    crds.mkdir()
    (crds / "policy.yaml").write_text(CRD)
    plugin.check(RELEASE, "rel", release)
    manifest = {"apiVersion": "policy.test/v1", "kind": "Policy", "metadata": {"name": "x"}}
    assert "namespace" not in plugin.check("kubernetes:policy.test/v1:Policy", "x", manifest)["metadata"]


def test_values_and_credentials_leave_no_file(plugin: KubernetesPlugin, release: Properties) -> None:
    plugin.create(RELEASE, "rel", release)
    assert list((paths.home() / "tmp").iterdir()) == []


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: policies.policy.test
spec:
  group: policy.test
  scope: Cluster
  names: {kind: Policy, plural: policies, singular: policy}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
"""
