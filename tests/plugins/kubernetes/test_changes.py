"""What a change of an object does: each row of the table observed of the official plugin."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from simulator.kube.client import KubeClient
from simulator.plugins.marshal import Properties
from tests.plugins.kubernetes.engine import Failed, Plugin

pytestmark = pytest.mark.simulator

IMAGE = "registry.invalid/never-runs"


@dataclass(frozen=True)
class Row:
    """An object, a change at a dotted path, and what it does: the paths that replace it, or none for an update."""

    token: str
    manifest: Properties
    path: str
    value: Any
    replaces: tuple[str, ...] = ()


def workload(kind: str) -> Properties:
    labels = {"app": "a"}
    containers = [{"name": "c", "image": IMAGE}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": SKIP, "spec": spec}


SKIP = {"annotations": {"pulumi.com/skipAwait": "true"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "1"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "stringData": {"a": "1"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": SKIP,
    "spec": {
        "parallelism": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGE}]}},
    },
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": SKIP,
    "spec": {"type": "ClusterIP", "ports": [{"port": 80}], "selector": {"app": "a"}},
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": SKIP,
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "blob.csi.azure.com", "volumeHandle": "h1"},
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": SKIP,
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [],
}
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {},
    "provisioner": "blob.csi.azure.com",
    "parameters": {"skuName": "Standard_LRS"},
}
PRIORITY_CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {}, "value": 10}
CUSTOM = {"apiVersion": "batch.volcano.test/v1alpha1", "kind": "Job", "metadata": {}, "spec": {"minAvailable": 1}}
TEMPLATE_IMAGE = "spec.template.spec.containers[0].image"

ROWS = {
    "ConfigMap data": Row("core/v1:ConfigMap", CONFIG_MAP, "data.a", "2", ("data.a",)),
    "Secret data": Row("core/v1:Secret", SECRET, "stringData.a", "2", ("data.a",)),
    "name of anything": Row("core/v1:ConfigMap", CONFIG_MAP, "metadata.name", "other", ("metadata.name",)),
    "Job image": Row("batch/v1:Job", JOB, TEMPLATE_IMAGE, "x/y", (TEMPLATE_IMAGE,)),
    "Job parallelism": Row("batch/v1:Job", JOB, "spec.parallelism", 2, ("spec.parallelism",)),
    "Deployment replicas": Row("apps/v1:Deployment", workload("Deployment"), "spec.replicas", 3),
    "Deployment image": Row("apps/v1:Deployment", workload("Deployment"), TEMPLATE_IMAGE, "x/y"),
    "DaemonSet image": Row("apps/v1:DaemonSet", workload("DaemonSet"), TEMPLATE_IMAGE, "x/y"),
    "Deployment selector": Row(
        "apps/v1:Deployment",
        workload("Deployment"),
        "spec.selector.matchLabels.x",
        "y",
        ("spec.selector.matchLabels.x",),
    ),
    "Service type": Row("core/v1:Service", SERVICE, "spec.type", "NodePort"),
    "Service clusterIP": Row("core/v1:Service", SERVICE, "spec.clusterIP", "10.0.9.9", ("spec.clusterIP",)),
    "PersistentVolume capacity": Row("core/v1:PersistentVolume", VOLUME, "spec.capacity.storage", "2Gi"),
    "PersistentVolume handle": Row(
        "core/v1:PersistentVolume", VOLUME, "spec.csi.volumeHandle", "h2", ("spec.csi.volumeHandle",)
    ),
    "PersistentVolumeClaim request": Row(
        "core/v1:PersistentVolumeClaim", CLAIM, "spec.resources.requests.storage", "2Gi"
    ),
    "ClusterRoleBinding role": Row(
        "rbac.authorization.k8s.io/v1:ClusterRoleBinding", BINDING, "roleRef.name", "edit", ("roleRef.name",)
    ),
    "StorageClass parameters": Row(
        "storage.k8s.io/v1:StorageClass",
        STORAGE_CLASS,
        "parameters.skuName",
        "Premium_LRS",
        ("parameters.skuName",),
    ),
    "PriorityClass value": Row("scheduling.k8s.io/v1:PriorityClass", PRIORITY_CLASS, "value", 20),
    "custom resource": Row("batch.volcano.test/v1alpha1:Job", CUSTOM, "spec.minAvailable", 2),
}


@pytest.fixture(scope="module", autouse=True)
def volcano_job(kube: KubeClient) -> Iterator[None]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Job", "plural": "jobs", "singular": "job"}
    kube.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "jobs.batch.volcano.test"},
            "spec": {"group": "batch.volcano.test", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    yield
    kube.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "jobs.batch.volcano.test")


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_change(row: Row, plugin: Plugin, namespace: str) -> None:
    before = copy.deepcopy(row.manifest)
    if "Class" not in row.token and "Binding" not in row.token and not row.token.endswith("PersistentVolume"):
        before["metadata"] = before["metadata"] | {"namespace": namespace}
    resource = plugin.create(f"kubernetes:{row.token}", f"it-{uuid.uuid4().hex[:6]}", before)
    try:
        unchanged = plugin.diff(resource, before)
        assert unchanged.changes == unchanged.DIFF_NONE, unchanged
        found = plugin.diff(resource, changed(before, row.path, row.value))
        assert found.changes == found.DIFF_SOME
        assert tuple(found.replaces) == row.replaces
        assert not found.deleteBeforeReplace, "an autonamed object is replaced without a gap"
        assert row.path.replace("stringData", "data") in found.detailedDiff
    finally:
        plugin.delete(resource)


def test_a_named_object_goes_before_its_replacement_comes(plugin: Plugin, namespace: str) -> None:
    manifest = CONFIG_MAP | {"metadata": {"name": "fixed", "namespace": namespace}}
    resource = plugin.create("kubernetes:core/v1:ConfigMap", "cm", manifest)
    found = plugin.diff(resource, changed(manifest, "data.a", "2"))
    assert list(found.replaces) == ["data.a"]
    assert found.deleteBeforeReplace


def test_config_maps_can_be_made_mutable(kubeconfig: str, namespace: str) -> None:
    plugin = Plugin({"kubeconfig": kubeconfig, "enableConfigMapMutable": "true", "enableSecretMutable": "true"})
    manifest = CONFIG_MAP | {"metadata": {"namespace": namespace}}
    resource = plugin.create("kubernetes:core/v1:ConfigMap", "cm", manifest)
    assert not plugin.diff(resource, changed(manifest, "data.a", "2")).replaces
    updated = plugin.update(resource, changed(manifest, "data.a", "2"))
    assert updated.state["data"] == {"a": "2"}
    plugin.close()


def test_the_value_of_a_priority_class_is_refused_by_the_server(plugin: Plugin) -> None:
    resource = plugin.create("kubernetes:scheduling.k8s.io/v1:PriorityClass", "prio", PRIORITY_CLASS)
    try:
        with pytest.raises(Failed, match="is invalid: value: Forbidden: may not be changed in an update"):
            plugin.update(resource, changed(PRIORITY_CLASS, "value", 20))
    finally:
        plugin.delete(resource)


def changed(manifest: Properties, path: str, value: Any) -> Properties:
    """A copy with another value at the path (`containers[0]` for an index)."""
    result = copy.deepcopy(manifest)
    *parents, last = path.replace("[", ".[").split(".")
    at: Any = result
    for step in parents:
        at = at[int(step[1:-1])] if step.startswith("[") else at.setdefault(step, {})
    at[last] = value
    return result
