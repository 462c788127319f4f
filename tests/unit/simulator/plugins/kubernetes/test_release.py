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


def test_an_unnamed_release_keeps_its_generated_name(plugin: KubernetesPlugin, release: Properties) -> None:
    del release["name"]
    inputs = plugin.check(RELEASE, "rel", release)
    assert re.fullmatch(r"rel-[0-9a-f]{8}", inputs["name"])
    assert plugin.check(RELEASE, "rel", release, inputs)["name"] == inputs["name"]


def test_resource_names_contain_the_group(plugin: KubernetesPlugin, release: Properties) -> None:
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


def test_creates_the_namespace_with_the_release(
    plugin: KubernetesPlugin, release: Properties, kube: KubeClient
) -> None:
    made = plugin.create(RELEASE, "rel", release | {"namespace": "made-by-helm", "createNamespace": True})
    assert made.id == "made-by-helm/rel"
    plugin.delete(made)
    kube.delete("v1", "Namespace", "made-by-helm")


def test_deletes_a_missing_release_only_to_resume_an_update(
    plugin: KubernetesPlugin, release: Properties, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    plugin.delete(made)
    with pytest.raises(Failed, match="uninstall: Release not loaded: rel: release: not found"):
        plugin.delete(made)
    monkeypatch.setenv(GOES_ON, "true")
    resuming = KubernetesPlugin({"kubeconfig": kubeconfig})
    resuming.delete(made)
    resuming.close()


def test_adopts_a_release_of_a_killed_plugin_to_resume_an_update(
    plugin: KubernetesPlugin, release: Properties, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    monkeypatch.setenv(GOES_ON, "true")
    resuming = KubernetesPlugin({"kubeconfig": kubeconfig})
    assert resuming.create(RELEASE, "rel", release).state == made.state
    with pytest.raises(Failed, match="cannot re-use a name that is still in use"):
        resuming.create(RELEASE, "rel", release | {"values": {"size": 6}})
    resuming.close()


def test_reports_objects_that_a_deletion_keeps(plugin: KubernetesPlugin, release: Properties, chart: Path) -> None:
    kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
    (chart / "templates" / "kept.yaml").write_text(kept)
    plugin.delete(plugin.create(RELEASE, "rel", release))
    (message,) = [line for line in plugin.engine.messages if line.startswith("Helm uninstall returned information: ")]
    assert "These resources were kept due to the resource policy:" in message
    assert "[ConfigMap] kept" in message


def test_cancel_does_not_stop_a_deletion(
    plugin: KubernetesPlugin, release: Properties, kube: KubeClient, namespace: str
) -> None:
    made = plugin.create(RELEASE, "rel", release)
    kube.patch("v1", "ConfigMap", "rel", namespace, {"metadata": {"finalizers": ["test.invalid/holds"]}})
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(plugin.delete, made)
        try:
            eventually(
                lambda: kube.get("v1", "ConfigMap", "rel", namespace)["metadata"].get("deletionTimestamp"),
                "it is deleted",
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


def test_reads_the_scope_of_kinds_from_a_chart(plugin: KubernetesPlugin, release: Properties, chart: Path) -> None:
    crds = chart / "crds"
    crds.mkdir()
    (crds / "policy.yaml").write_text(CRD)
    plugin.check(RELEASE, "rel", release)
    manifest = {"apiVersion": "policy.test/v1", "kind": "Policy", "metadata": {"name": "x"}}
    assert "namespace" not in plugin.check("kubernetes:policy.test/v1:Policy", "x", manifest)["metadata"]


def test_leaves_no_files_with_values_or_credentials(plugin: KubernetesPlugin, release: Properties) -> None:
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
