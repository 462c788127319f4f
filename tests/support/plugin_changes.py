"""Changes of objects and what each does: the table observed of the official plugin (and CUSTOM's kind, for it).

The plugin's own tests ask for the diff of each row, those of `tests/contract/conformance` for the preview of a stack.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from simulator.plugins.marshal import Properties

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
EMPTY_SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"labels": {"a": "1"}}, "data": {}}
"""The API server drops empty data, and the plugin does not normalise it (clients/unstructured.go, normalizeSecret)."""
EMPTY_CONFIG_MAP = {**EMPTY_SECRET, "kind": "ConfigMap"}
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
    "label of a Secret with empty data": Row("core/v1:Secret", EMPTY_SECRET, "metadata.labels.a", "b", ("data",)),
    "label of a ConfigMap with empty data": Row("core/v1:ConfigMap", EMPTY_CONFIG_MAP, "metadata.labels.a", "b"),
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


def custom_kind() -> Properties:
    """The definition of CUSTOM's kind."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Job", "plural": "jobs", "singular": "job"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "jobs.batch.volcano.test"},
        "spec": {"group": "batch.volcano.test", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def changed(manifest: Properties, path: str, value: Any) -> Properties:
    """A copy with another value at the path (`containers[0]` for an index)."""
    result = copy.deepcopy(manifest)
    *parents, last = path.replace("[", ".[").split(".")
    at: Any = result
    for step in parents:
        at = at[int(step[1:-1])] if step.startswith("[") else at.setdefault(step, {})
    at[last] = value
    return result
