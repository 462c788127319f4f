"""Names, ids, inputs and outputs of objects."""

from __future__ import annotations

import base64
import re

import pytest

from simulator.kube.client import KubeClient
from simulator.plugins.marshal import UNKNOWN, Secret
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


def test_an_unnamed_object_is_named_after_its_logical_name(plugin: KubernetesPlugin, namespace: str) -> None:
    resource = plugin.create(CONFIG_MAP, "settings", config_map(namespace))
    metadata = resource.inputs["metadata"]
    assert re.fullmatch(r"settings-[0-9a-f]{8}", metadata["name"])
    assert metadata["annotations"] == {"pulumi.com/autonamed": "true"}
    assert resource.id == f"{namespace}/{metadata['name']}"


def test_an_unnamed_object_keeps_its_name(plugin: KubernetesPlugin, namespace: str) -> None:
    resource = plugin.create(CONFIG_MAP, "settings", config_map(namespace))
    again = plugin.check(CONFIG_MAP, "settings", config_map(namespace), resource.inputs)
    assert again["metadata"]["name"] == resource.inputs["metadata"]["name"]


def test_the_id_of_a_cluster_scoped_object_is_its_name(plugin: KubernetesPlugin) -> None:
    resource = plugin.create("kubernetes:core/v1:Namespace", "team", {"apiVersion": "v1", "kind": "Namespace"})
    try:
        assert re.fullmatch(r"team-[0-9a-f]{8}", resource.id)
        assert "namespace" not in resource.inputs["metadata"]
    finally:
        plugin.delete(resource)


def test_a_namespaced_object_without_namespace_is_in_default(plugin: KubernetesPlugin) -> None:
    inputs = plugin.check(CONFIG_MAP, "settings", {"apiVersion": "v1", "kind": "ConfigMap"})
    assert inputs["metadata"]["namespace"] == "default"


def test_outputs_are_the_live_object_and_how_it_was_made(plugin: KubernetesPlugin, namespace: str) -> None:
    resource = plugin.create(CONFIG_MAP, "settings", config_map(namespace, name="x"))
    assert resource.state["__inputs"] == resource.inputs
    assert resource.state["__initialApiVersion"] == "v1"
    assert re.fullmatch(r"pulumi-kubernetes-[0-9a-f]{8}", resource.state["__fieldManager"])
    assert resource.state["metadata"]["uid"]


def test_a_secret_is_a_secret_in_inputs_and_outputs(plugin: KubernetesPlugin, namespace: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace},
        "stringData": {"password": "hunter2"},
    }
    resource = plugin.create("kubernetes:core/v1:Secret", "keys", manifest)
    expected = Secret({"password": base64.b64encode(b"hunter2").decode()})
    assert resource.inputs["data"] == expected
    assert resource.state["data"] == expected
    assert resource.state["__inputs"]["data"] == expected
    assert "stringData" not in resource.state
    refreshed = plugin.refresh(resource)
    assert refreshed is not None
    assert refreshed.state["data"] == expected


def test_secret_inputs_stay_secret(plugin: KubernetesPlugin, namespace: str) -> None:
    manifest = config_map(namespace) | {"data": {"token": Secret("t"), "plain": "p"}}
    resource = plugin.create(CONFIG_MAP, "settings", manifest)
    assert resource.state["data"] == {"token": Secret("t"), "plain": "p"}
    refreshed = plugin.refresh(resource)
    assert refreshed is not None
    assert refreshed.inputs["data"] == {"token": Secret("t"), "plain": "p"}


def test_a_preview_shows_unknowns_as_they_are(plugin: KubernetesPlugin, namespace: str) -> None:
    shown = plugin.preview(CONFIG_MAP, "settings", config_map(namespace) | {"data": {"a": UNKNOWN}})
    assert shown["data"] == {"a": UNKNOWN}
    unknown_namespace = plugin.preview(CONFIG_MAP, "settings", config_map("x") | {"metadata": {"namespace": UNKNOWN}})
    assert unknown_namespace["metadata"]["namespace"] is UNKNOWN


def test_a_preview_asks_the_server_and_changes_nothing(
    plugin: KubernetesPlugin, namespace: str, kube: KubeClient
) -> None:
    shown = plugin.preview(CONFIG_MAP, "settings", config_map(namespace, name="dry"))
    assert shown["metadata"]["uid"]
    assert kube.find("v1", "ConfigMap", "dry", namespace) is None
    with pytest.raises(Failed, match="Invalid value"):
        plugin.preview(CONFIG_MAP, "settings", config_map(namespace, name="Not A Name"))


def test_a_preview_in_a_namespace_still_to_come_shows_the_inputs(plugin: KubernetesPlugin) -> None:
    shown = plugin.preview(CONFIG_MAP, "settings", config_map("still-to-come", name="x"))
    assert shown["data"] == {"a": "1"}
    assert "__inputs" not in shown


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


def test_fields_that_the_server_leaves_out_are_no_difference(plugin: KubernetesPlugin, namespace: str) -> None:
    spec = {"hostNetwork": False, "nodeSelector": {}, "tolerations": [], "containers": [{"name": "c", "image": "x"}]}
    metadata = {"namespace": namespace, "annotations": {"pulumi.com/skipAwait": "true"}}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    resource = plugin.create("kubernetes:core/v1:Pod", "p", manifest)
    assert plugin.diff(resource, manifest).changes == 1
    refreshed = plugin.refresh_unready(resource)
    assert plugin.diff(refreshed, manifest).changes == 1


def test_drift_shows_after_a_refresh(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    manifest = config_map(namespace, name="drifts")
    resource = plugin.create(CONFIG_MAP, "settings", manifest)
    kube.patch("v1", "ConfigMap", "drifts", namespace, {"data": {"a": "other"}, "metadata": {"labels": {"x": "y"}}})
    refreshed = plugin.refresh(resource)
    assert refreshed is not None
    assert refreshed.inputs["data"] == {"a": "other"}
    assert "labels" not in refreshed.inputs["metadata"]
    assert list(plugin.diff(refreshed, manifest).replaces) == ["data.a"]


def test_an_object_that_is_gone_leaves_the_state(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    resource = plugin.create(CONFIG_MAP, "settings", config_map(namespace, name="gone"))
    kube.delete("v1", "ConfigMap", "gone", namespace)
    assert plugin.refresh(resource) is None
    plugin.delete(resource)


def test_an_object_can_be_imported(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    servers = {"deployment.kubernetes.io/revision": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    kube.create(config_map(namespace, name="there", annotations=servers))
    resource = plugin.import_(CONFIG_MAP, "settings", f"{namespace}/there")
    assert resource.inputs["data"] == {"a": "1"}
    assert plugin.diff(resource, config_map(namespace, name="there")).changes == 1


def test_apply_removes_what_the_inputs_no_longer_say(
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


def test_a_patch_resource_manages_its_fields_only(plugin: KubernetesPlugin, namespace: str, kube: KubeClient) -> None:
    kube.create(config_map(namespace, name="shared"))
    patch = config_map(namespace, name="shared") | {"data": {"b": "2"}}
    resource = plugin.create("kubernetes:core/v1:ConfigMapPatch", "p", patch)
    assert kube.get("v1", "ConfigMap", "shared", namespace)["data"] == {"a": "1", "b": "2"}
    plugin.delete(resource)
    assert kube.get("v1", "ConfigMap", "shared", namespace)["data"] == {"a": "1"}


def test_a_patch_resource_that_made_the_object_cannot_be_deleted(plugin: KubernetesPlugin, namespace: str) -> None:
    metadata = {"namespace": namespace, "name": "made", "annotations": {"pulumi.com/skipAwait": "true"}}
    patch = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
    resource = plugin.create("kubernetes:core/v1:ServicePatch", "p", patch)
    with pytest.raises(Failed, match="this Patch resource is currently managing a required field.*: spec.ports"):
        plugin.delete(resource)


def test_large_objects_survive_a_failure(plugin: KubernetesPlugin, namespace: str) -> None:
    metadata = {"namespace": namespace, "name": "big", "annotations": {"pulumi.com/timeoutSeconds": "1"}}
    environment = [{"name": f"V{index}", "value": "x" * 200} for index in range(300)]
    pod = {"containers": [{"name": "c", "image": "x", "env": environment}]}
    with pytest.raises(Failed) as failure:
        plugin.create(
            "kubernetes:core/v1:Pod", "big", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}
        )
    assert failure.value.partial is not None
