from __future__ import annotations

import pytest

from simulator.kube.client import KubeClient
from tests.support.plugin_engine import Failed, KubernetesPlugin

pytestmark = pytest.mark.simulator

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def config_map(namespace: str, **metadata: object) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, **metadata},
        "data": {"a": "1"},
    }


def test_a_preview_is_a_dry_run(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    shown = plugin.preview(CONFIG_MAP, "settings", config_map(namespace, name="dry"))
    assert shown["metadata"]["uid"]
    assert kube.find("v1", "ConfigMap", "dry", namespace) is None
    with pytest.raises(Failed, match="Invalid value"):
        plugin.preview(CONFIG_MAP, "settings", config_map(namespace, name="Not A Name"))


def test_quantities_are_canonical(plugin: KubernetesPlugin, namespace: str) -> None:
    def pod(memory: str) -> dict[str, object]:
        container = {"name": "c", "image": "x", "resources": {"limits": {"memory": memory, "cpu": "1000m"}}}
        annotations = {"pulumi.com/skipAwait": "true"}
        metadata = {"namespace": namespace, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}

    resource = plugin.create("kubernetes:core/v1:Pod", "p", pod("1024Mi"))
    assert resource.inputs["spec"]["containers"][0]["resources"]["limits"] == {"memory": "1Gi", "cpu": "1"}
    assert plugin.diff(resource, pod("1Gi")).changes == 1
    assert plugin.diff(resource, pod("1024Mi")).changes == 1
    assert plugin.diff(resource, pod("2Gi")).changes == 2


def test_ignores_empty_fields_that_the_server_omits(plugin: KubernetesPlugin, namespace: str) -> None:
    spec = {"hostNetwork": False, "nodeSelector": {}, "tolerations": [], "containers": [{"name": "c", "image": "x"}]}
    metadata = {"namespace": namespace, "annotations": {"pulumi.com/skipAwait": "true"}}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    resource = plugin.create("kubernetes:core/v1:Pod", "p", manifest)
    assert plugin.diff(resource, manifest).changes == 1
    refreshed = plugin.refresh_unready(resource)
    assert plugin.diff(refreshed, manifest).changes == 1


def test_an_update_removes_fields_that_the_inputs_lack(
    plugin: KubernetesPlugin, namespace: str, kube: KubeClient
) -> None:
    labels = {"keep": "1", "drop": "2"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": namespace, "labels": labels},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}]},
    }
    resource = plugin.create("kubernetes:core/v1:Service", "s", service)
    kube.patch("v1", "Service", "s", namespace, {"metadata": {"labels": {"theirs": "3"}}}, field_manager="other")
    updated = plugin.update(
        resource, service | {"metadata": {"name": "s", "namespace": namespace, "labels": {"keep": "1"}}}
    )
    assert updated.state["metadata"]["labels"] == {"keep": "1", "theirs": "3"}


def test_a_failure_returns_the_state_of_a_large_object(plugin: KubernetesPlugin, namespace: str) -> None:
    metadata = {"namespace": namespace, "name": "big", "annotations": {"pulumi.com/timeoutSeconds": "1"}}
    environment = [{"name": f"V{index}", "value": "x" * 200} for index in range(300)]
    pod = {"containers": [{"name": "c", "image": "x", "env": environment}]}
    with pytest.raises(Failed) as failure:
        plugin.create(
            "kubernetes:core/v1:Pod", "big", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
        )
    assert failure.value.partial is not None
