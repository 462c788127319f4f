"""Errors are recorded from the official plugin."""

from __future__ import annotations

import threading

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes.options import GOES_ON
from simulator.plugins.marshal import Properties
from tests.support.plugin_engine import Failed, KubernetesPlugin

pytestmark = pytest.mark.simulator

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def config_map(namespace: str, name: str = "x") -> Properties:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_upserts_an_existing_object(kubeconfig: str, namespace: str) -> None:
    plugin = KubernetesPlugin({"kubeconfig": kubeconfig, "upsertExistingObjects": "true"})
    plugin.create(CONFIG_MAP, "first", config_map(namespace))
    second = plugin.create(CONFIG_MAP, "second", config_map(namespace) | {"data": {"a": "2"}})
    assert second.state["data"] == {"a": "2"}
    plugin.close()


def test_adopts_objects_of_a_killed_plugin(kubeconfig: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GOES_ON, "true")
    plugin = KubernetesPlugin({"kubeconfig": kubeconfig})
    first = plugin.create(CONFIG_MAP, "first", config_map(namespace) | {"data": {"a": "1", "b": "1"}})
    plugin.update(first, config_map(namespace) | {"data": {"a": "1", "b": "2"}})  # moves the fields
    second = plugin.create(CONFIG_MAP, "second", config_map(namespace) | {"data": {"a": "2"}})
    assert second.state["data"] == {"a": "2"}
    plugin.close()


def test_does_not_adopt_objects_of_others(
    kubeconfig: str, namespace: str, kube: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GOES_ON, "true")
    kube.create(config_map(namespace) | {"data": {"a": "1"}})
    plugin = KubernetesPlugin({"kubeconfig": kubeconfig})
    with pytest.raises(Failed, match="already exists"):
        plugin.create(CONFIG_MAP, "theirs", config_map(namespace))
    plugin.close()


def test_waits_for_a_missing_kind(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    threading.Timer(1, lambda: kube.create(crd("late"))).start()
    plugin.provider.session.retry_unit = 0.5
    manifest = {"apiVersion": "late.test/v1", "kind": "Late", "metadata": {"namespace": namespace, "name": "x"}}
    assert plugin.create("kubernetes:late.test/v1:Late", "late", manifest).id == f"{namespace}/x"
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "lates.late.test")


def test_objects_of_a_deleted_kind_count_as_deleted(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    definition = plugin.create("kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition", "crd", crd("brief"))
    manifest = {"apiVersion": "brief.test/v1", "kind": "Brief", "metadata": {"namespace": namespace, "name": "x"}}
    resource = plugin.create("kubernetes:brief.test/v1:Brief", "x", manifest)
    plugin.delete(definition)
    assert plugin.refresh(resource) is None
    plugin.delete(resource)


def test_drops_objects_of_an_unreachable_cluster(kubeconfig: str, plugin: KubernetesPlugin, namespace: str) -> None:
    resource = plugin.create(CONFIG_MAP, "x", config_map(namespace))
    dead = KubernetesPlugin({"kubeconfig": "apiVersion: v1\nkind: Config\n"})
    with pytest.raises(Failed, match="PULUMI_K8S_DELETE_UNREACHABLE"):
        dead.refresh(resource)
    with pytest.raises(Failed, match="PULUMI_K8S_DELETE_UNREACHABLE"):
        dead.delete(resource)
    dead.close()
    dropping = KubernetesPlugin({"kubeconfig": "apiVersion: v1\nkind: Config\n", "deleteUnreachable": "true"})
    assert dropping.refresh(resource) is None
    dropping.delete(resource)
    dropping.close()


def test_reports_a_cluster_that_becomes_unreachable(kubeconfig: str, plugin: KubernetesPlugin, namespace: str) -> None:
    plugin.provider.session.kube.server = ""
    plugin.provider.session.kube._http.base_url = "https://127.0.0.1:1"
    with pytest.raises(Failed, match="configured Kubernetes cluster is unreachable"):
        plugin.create(CONFIG_MAP, "x", config_map(namespace))


def test_rejects_functions(plugin: KubernetesPlugin) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        plugin.stub.Invoke(provider_pb2.InvokeRequest(tok="kubernetes:helm:template"))
    assert "needs the official kubernetes plugin" in failure.value.details()


def test_rejects_the_annotation_wait_for(plugin: KubernetesPlugin) -> None:
    """Otherwise an update would end before the condition is true."""
    metadata = {"name": "x", "annotations": {"pulumi.com/waitFor": "jsonpath={.data.a}"}}
    with pytest.raises(Failed, match=r"the annotation pulumi\.com/waitFor needs the official kubernetes plugin"):
        plugin.check(CONFIG_MAP, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def crd(name: str) -> Properties:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": name.capitalize(), "plural": f"{name}s", "singular": name}
    spec = {"group": f"{name}.test", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{name}s.{name}.test"}
    api_version = "apiextensions.k8s.io/v1"
    return {"apiVersion": api_version, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}
