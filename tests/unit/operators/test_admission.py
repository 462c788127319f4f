from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.scheduling import COSCHEDULER, QUEUE_LABEL, TEAM_LABELS
from operators.kueue import admission, rights
from simulator.cluster.controlplane import ControlPlane
from simulator.host import paths
from simulator.kube.client import KubeClient
from tests.support.waiting import eventually
from tests.unit.operators.policy_objects import Object, policy_objects

pytestmark = pytest.mark.simulator
ALICE, ADMIN = "alice", "admin"
JOBS, APPWRAPPER = "system:serviceaccount:kube-system:job-controller", "system:serviceaccount:appwrapper-system:manager"
KUEUE, COLLECTOR = "system:serviceaccount:mlbatch-system:kueue", "system:serviceaccount:kube-system:garbage-collector"
OWN_POD = "system:serviceaccount:blue:default"
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
"""The kinds that need a CRD."""
SPACES: dict[str, Any] = {"blue": TEAM_LABELS, "elsewhere": {}}


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane) -> Iterator[KubeClient]:
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
    return _said(user, "create", "-f-", text=json.dumps(made))


def patch_refused(user: str, name: str, metadata: Object) -> str:
    change = json.dumps({"metadata": metadata})
    return _said(user, "patch", "job", name, "--namespace=blue", "--type=merge", f"--patch={change}")


def warned(user: str, made: Object) -> str:
    return _said(user, "create", "-f-", text=json.dumps(made), taken=True)


def _said(user: str, verb: str, *arguments: str, text: str = "", taken: bool = False) -> str:
    config = paths.home() / "clusters" / "policies" / "admin.kubeconfig"
    command = [str(paths.tool("kubectl")), f"--kubeconfig={config}", verb, "--dry-run=server", "--as", user, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stderr if taken is not bool(done.returncode) else ""


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


def deployment(gpus: int, owner: str = "") -> Object:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pods(gpus, restartPolicy="Always", **SCHEDULED)}
    return named("Deployment", {"selector": {"matchLabels": labels}, "template": template}, owner=owner)


def wrapped(*templates: Object, labels: Object = QUEUE) -> Object:
    return named("AppWrapper", {"components": [{"template": each} for each in templates]}, labels=labels)


def service(**spec: Any) -> Object:
    return named("Service", {"selector": {"app": "a"}, "ports": [{"port": 80}], **spec})


SCHEDULED: Object = {"schedulerName": COSCHEDULER}
NO_QUEUE, BYPASS = "it has no queue", "it would bypass the queue for GPUs"
OWNED, PRIORITY = "it has an owner", "teams may not use its priority class"
SCHEDULER = f"set schedulerName: {COSCHEDULER}"
REACHABLE = "it would be reachable from outside the cluster"
RUNTIME = "its runtime class would bypass the queue"
SYSTEM: Object = {"priorityClassName": "system-node-critical"}
NONE = {**pods()["containers"][0], "resources": {"limits": {"nvidia.com/gpu": "0"}}}

REFUSED: dict[str, tuple[str, Object, str]] = {
    "a job without a queue": (ALICE, job(pods(), labels={}), NO_QUEUE),
    "a job of an administrator without a queue": (ADMIN, job(pods(), labels={}), NO_QUEUE),
    "a job with an empty queue": (ALICE, job(pods(), labels={"kueue.x-k8s.io/queue-name": ""}), NO_QUEUE),
    "an AppWrapper without a queue": (ALICE, wrapped(job(pods()), labels={}), NO_QUEUE),
    "a CronJob's job without a queue": (JOBS, job(pods(), owner="CronJob", labels={}), NO_QUEUE),
    "a job that claims to be part of one that has queued": (ALICE, job(pods(), owner="Job", labels={}), NO_QUEUE),
    "such a job with a queue": (ALICE, job(pods(), owner="Job"), OWNED),
    "a job that a pod of the team creates": (OWN_POD, job(pods(), owner="Job", labels={}), NO_QUEUE),
    "a pod with GPUs": (ADMIN, named("Pod", pods(1, **SCHEDULED)), BYPASS),
    "a pod with GPUs and the label of a queue": (ADMIN, named("Pod", pods(1, **SCHEDULED), labels=QUEUE), BYPASS),
    "a pod with GPUs that claims to be part of a job": (ADMIN, named("Pod", pods(1, **SCHEDULED), owner="Job"), BYPASS),
    "a pod with GPUs in an init container": (
        ADMIN,
        named("Pod", {**pods(), **SCHEDULED, "initContainers": [{**pods(1)["containers"][0], "name": "first"}]}),
        BYPASS,
    ),
    "a Deployment with GPUs": (ADMIN, deployment(1), BYPASS),
    "a job with a priority of the system's": (ALICE, job(pods(**SYSTEM)), PRIORITY),
    "a pod with such a priority": (JOBS, named("Pod", pods(**SYSTEM), owner="Job"), PRIORITY),
    "an AppWrapper around such a job": (ALICE, wrapped(job(pods(**SYSTEM))), PRIORITY),
    "an AppWrapper around such a pod": (ALICE, wrapped(named("Pod", pods(**SYSTEM))), PRIORITY),
    "a Workload of such a job": (
        KUEUE,
        named("Workload", {"podSets": [{"template": {"spec": pods(**SYSTEM)}}]}, owner="Job"),
        PRIORITY,
    ),
    "a job with GPUs for another scheduler": (ALICE, job(pods(8)), SCHEDULER),
    "a pod of such a job": (JOBS, named("Pod", pods(8), owner="Job"), SCHEDULER),
    "an AppWrapper around a job with another scheduler": (
        ALICE,
        wrapped(job(pods(8, schedulerName="default-scheduler"))),
        SCHEDULER,
    ),
    "a job with the runtime of NVIDIA's own pods": (ALICE, job(pods(runtimeClassName="nvidia")), RUNTIME),
    "a pod with that runtime": (JOBS, named("Pod", pods(runtimeClassName="nvidia"), owner="Job"), RUNTIME),
    "a service with a public address": (ALICE, service(type="LoadBalancer"), REACHABLE),
    "a service on a port of every node": (ALICE, service(type="NodePort"), REACHABLE),
    "a service with an external address": (ALICE, service(externalIPs=["10.0.0.4"]), REACHABLE),
    "an AppWrapper around a pod with that runtime": (
        ALICE,
        wrapped(named("Pod", pods(runtimeClassName="nvidia"))),
        RUNTIME,
    ),
}

ALLOWED: dict[str, tuple[str, Object]] = {
    "a job with a queue": (ALICE, job(pods(8, **SCHEDULED))),
    "a job without GPUs, by any scheduler": (ALICE, job(pods())),
    "a job's pods": (JOBS, named("Pod", pods(8, **SCHEDULED), owner="Job")),
    "pods without GPUs": (ADMIN, named("Pod", pods())),
    "a pod that requests 0 GPUs": (ADMIN, named("Pod", {"containers": [NONE]})),
    "an AppWrapper without a scheduler": (ALICE, wrapped(job(pods(8)))),
    "an AppWrapper without pods": (ALICE, wrapped({"apiVersion": "v1", "kind": "ConfigMap"})),
    "the job of an AppWrapper": (APPWRAPPER, job(pods(8, **SCHEDULED), owner="AppWrapper", labels={})),
    "a Deployment that is wrapped": (APPWRAPPER, deployment(1, owner="AppWrapper")),
    "a service within the cluster": (ALICE, service()),
    "a headless service": (ALICE, service(clusterIP="None")),
    "a CronJob's job with a queue": (JOBS, job(pods(), owner="CronJob")),
    "a Workload of an AppWrapper": (
        KUEUE,
        named("Workload", {"podSets": [{"template": {"spec": pods(8)}}]}, owner="AppWrapper"),
    ),
    **{f"a job of {name}": (ALICE, job(pods(priorityClassName=name))) for name in rights.CLASSES},
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_rejects_these_objects(row: tuple[str, Object, str]) -> None:
    user, made, why = row
    assert why in refused(user, made)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("row", ALLOWED.values(), ids=ALLOWED.keys())
def test_accepts_these_objects(row: tuple[str, Object]) -> None:
    assert refused(*row) == ""


def trained(workers: int, gpus: int) -> Object:
    template = {"template": {"spec": pods(gpus, **SCHEDULED)}}
    replicas = {"Master": template, "Worker": {"replicas": workers, **template}}
    return named("PyTorchJob", {"pytorchReplicaSpecs": replicas}, labels=QUEUE)


def parallel(count: int, gpus: int, queue: str = "default-queue") -> Object:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    return named("Job", {"parallelism": count, "template": {"spec": pods(gpus, **SCHEDULED)}}, labels=labels)


def with_hcas(made: Object, count: int) -> Object:
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"]["limits"]["nvidia.com/mlnxnics"] = str(count)
    return made


def in_numbers(made: Object) -> Object:
    changed: Object = json.loads(re.sub(r'"nvidia.com/gpu": "(\d+)"', r'"nvidia.com/gpu": \1', json.dumps(made)))
    return changed


TOO_MANY, NO_SUCH_QUEUE = "more GPUs than all quotas have together (24)", "its queue does not exist"
TOO_LARGE = "nodes have at most 8 nvidia.com/gpu. Request fewer in each pod"
CANNOT_START: dict[str, tuple[Object, str]] = {
    "a queue that does not exist": (parallel(1, 1, "nope"), NO_SUCH_QUEUE),
    "a job with more GPUs than all quotas": (parallel(4, 8), TOO_MANY),
    "a PyTorchJob of four nodes": (trained(3, 8), TOO_MANY),
    "an AppWrapper with GPUs as numbers": (wrapped(in_numbers(parallel(4, 8))), TOO_MANY),
    "an AppWrapper around two jobs": (wrapped(parallel(2, 8), parallel(2, 8)), TOO_MANY),
    "a pod that is larger than a node": (parallel(1, 9), TOO_LARGE),
    "a pod with more HCAs than a node": (with_hcas(parallel(1, 8), 9), TOO_LARGE.replace("gpu", "mlnxnics")),
    "a pod of a PyTorchJob": (trained(1, 12), TOO_LARGE),
    "a pod in an AppWrapper": (wrapped(parallel(1, 16)), TOO_LARGE),
}
CAN_START = {
    "a pod with all of a node": with_hcas(parallel(1, 8), 8),
    "a job with all GPUs": parallel(3, 8),
    "a PyTorchJob with all GPUs": trained(2, 8),
    "an AppWrapper with all GPUs and a ConfigMap": wrapped(
        parallel(2, 8), parallel(1, 8), {"apiVersion": "v1", "kind": "ConfigMap"}
    ),
    "a job without GPUs": parallel(1000, 0),
}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("row", CANNOT_START.values(), ids=CANNOT_START.keys())
def test_warns_of_jobs_that_cannot_start(row: tuple[Object, str]) -> None:
    made, why = row
    assert why in warned(ALICE, made)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("made", CAN_START.values(), ids=CAN_START.keys())
def test_does_not_warn_of_jobs_that_can_start(made: Object) -> None:
    assert warned(ALICE, made) == ""


@pytest.mark.usefixtures("cluster")
def test_accepts_the_examples_of_the_page_for_teams() -> None:
    page = Path(paths.ROOT, "docs", "teams.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.+?)^```", page, re.DOTALL | re.MULTILINE)]
    assert [each["kind"] for each in blocks] == ["Job", "PyTorchJob", "RayJob", "AppWrapper"]
    for each in blocks:
        assert refused(ALICE, {**each, "metadata": {**each["metadata"], "namespace": "blue"}}) == ""


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_policies_do_not_apply_to_other_namespaces(row: tuple[str, Object, str]) -> None:
    user, made, _ = row
    metadata = {**made["metadata"], "namespace": "elsewhere"}
    message = refused(user, {**made, "metadata": metadata})
    assert "ValidatingAdmissionPolicy" not in message


def test_only_controllers_remove_a_queue_or_set_an_owner(cluster: KubeClient) -> None:
    cluster.create(job(pods(), name="waits"))
    forged = job(pods(), owner="Job")["metadata"]["ownerReferences"]
    without_queue = {"labels": {QUEUE_LABEL: None}}
    assert NO_QUEUE in patch_refused(ALICE, "waits", without_queue)
    assert OWNED in patch_refused(ALICE, "waits", {"ownerReferences": forged})
    assert patch_refused(ALICE, "waits", {"annotations": {"note": "mine"}}) == ""
    assert patch_refused(COLLECTOR, "waits", without_queue) == ""


def _checked(kube: KubeClient, policy: str) -> Object:
    found: Object = kube.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policy).get("status", {})
    return found if found.get("observedGeneration") else {}


def test_expressions_pass_the_type_check_of_the_api_server(cluster: KubeClient) -> None:
    for name in (admission.QUEUES, admission.PODS):
        status = eventually(partial(_checked, cluster, name), "they are type-checked")
        assert status.get("typeChecking", {}) == {}


def test_no_scheduler_is_required_if_none_is_installed() -> None:
    assert "schedulerName" not in json.dumps(admission.policies(None, ALL_GPUS, OF_NODE, HCA))


def test_the_policy_of_queues_applies_to_all_kinds_of_jobs() -> None:
    found = admission.policies(None, ALL_GPUS, OF_NODE, HCA)[admission.QUEUES]["matchConstraints"]["resourceRules"]
    kinds = {f"{rule['apiGroups'][0]}/{resource}" for rule in found for resource in rule["resources"]}
    assert kinds == {f"{name.partition('/')[0]}/{resource}" for name, resource in rights.FRAMEWORKS.items()}
