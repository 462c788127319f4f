"""A control plane with teams' admission policies, and objects that users create."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from config.data.scheduling import COSCHEDULER, TEAM_LABELS
from operators.kueue import admission, rights
from simulator.cluster.controlplane import ControlPlane
from simulator.host import paths
from simulator.kube.client import KubeClient
from tests.support.waiting import eventually
from tests.unit.operators.policy_objects import Object, policy_objects

ALICE = "alice"
HCA = "nvidia.com/mlnxnics"
ALL_GPUS, OF_NODE = 24, {"nvidia.com/gpu": 8, HCA: 8}
QUEUE = {"kueue.x-k8s.io/queue-name": "default-queue"}
VERSIONS = {
    "Pod": "v1",
    "Service": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "AppWrapper": "workload.codeflare.dev/v1beta2",
    "PyTorchJob": "kubeflow.org/v1",
    "RayJob": "ray.io/v1",
    "Workload": "kueue.x-k8s.io/v1beta2",
}
DEFINED = ("AppWrapper", "PyTorchJob", "RayJob", "Workload")
"""Kinds that need a CRD."""
SPACES: dict[str, Any] = {"blue": TEAM_LABELS, "elsewhere": {}}
SCHEDULED: Object = {"schedulerName": COSCHEDULER}


@pytest.fixture(scope="module")
def policies(plane: ControlPlane) -> Iterator[KubeClient]:
    with plane.client() as kube:
        for each in _objects():
            kube.create(each)
        eventually(lambda: all(kube.list("v1", "ServiceAccount", name) for name in SPACES), "pods have accounts")
        for kind in DEFINED:
            eventually(partial(_is_served, kube, kind), f"{kind} is served")
        eventually(lambda: refused(ALICE, job({}, labels={})), "the policies act")
        yield kube


def _objects() -> Iterator[Object]:
    for name, labels in SPACES.items():
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    for kind in DEFINED:
        yield crd(kind)
    for name, spec in admission.policies(COSCHEDULER, ALL_GPUS, OF_NODE, HCA).items():
        yield from policy_objects(name, spec, admission.binding(name))
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": subjects,
    }
    runtime: Object = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    yield {**runtime, "metadata": {"name": "nvidia"}}
    for name in rights.CLASSES:
        made = rights.priority_class(name)
        head: Object = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": made["metadata"]}
        yield {**head, "value": made["value"], "preemptionPolicy": made["preemption_policy"]}


def crd(kind: str) -> Object:
    group, version = VERSIONS[kind].split("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    plural = f"{kind.lower()}s"
    spec = {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": [served]}
    metadata = {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _is_served(kube: KubeClient, kind: str) -> bool:
    group = VERSIONS[kind].partition("/")[0]
    found = kube.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{kind.lower()}s.{group}")
    return any(each["type"] == "Established" for each in found.get("status", {}).get("conditions") or ())


def refused(user: str, made: Object) -> str:
    """Creates nothing."""
    return refusal(user, "create", "-f-", text=json.dumps(made))


def refusal(user: str, verb: str, *arguments: str, text: str = "") -> str:
    done = _dry_run(user, verb, *arguments, text=text)
    return done.stderr if done.returncode else ""


def warned(user: str, made: Object) -> str:
    done = _dry_run(user, "create", "-f-", text=json.dumps(made))
    assert done.returncode == 0, done.stderr
    return done.stderr


def _dry_run(user: str, verb: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    config = paths.home() / "clusters" / "policies" / "admin.kubeconfig"
    command = [str(paths.tool("kubectl")), f"--kubeconfig={config}", verb, "--dry-run=server", "--as", user, *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def pods(gpus: int = 0, **more: Any) -> Object:
    limits = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {"name": "main", "image": "registry.example.com/main:1", "resources": {"limits": limits}}
    return {"restartPolicy": "Never", "containers": [container], **more}


def named(kind: str, spec: Object, *, owner: str = "", labels: Object | None = None, name: str = "made") -> Object:
    metadata: Object = {"name": name, "namespace": "blue", "labels": labels or {}}
    if owner:
        reference = {"apiVersion": VERSIONS[owner], "kind": owner, "name": "parent", "uid": "u-1", "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def job(template: Object, *, owner: str = "", labels: Object = QUEUE, name: str = "made") -> Object:
    return named("Job", {"template": {"spec": template or pods()}}, owner=owner, labels=labels, name=name)


def wrapped(*templates: Object, labels: Object = QUEUE) -> Object:
    return named("AppWrapper", {"components": [{"template": each} for each in templates]}, labels=labels)
