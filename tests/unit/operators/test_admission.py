from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.scheduling import COSCHEDULER, QUEUE_LABEL
from operators.kueue import admission, rights
from simulator.host import paths
from simulator.kube.client import KubeClient
from tests.support.waiting import eventually
from tests.unit.operators.admission_cluster import (
    ALICE,
    ALL_GPUS,
    HCA,
    OF_NODE,
    QUEUE,
    SCHEDULED,
    job,
    named,
    pods,
    refusal,
    refused,
    wrapped,
)
from tests.unit.operators.policy_objects import Object

pytestmark = pytest.mark.simulator
ADMIN = "admin"
JOBS, APPWRAPPER = "system:serviceaccount:kube-system:job-controller", "system:serviceaccount:appwrapper-system:manager"
KUEUE, COLLECTOR = "system:serviceaccount:mlbatch-system:kueue", "system:serviceaccount:kube-system:garbage-collector"
OWN_POD = "system:serviceaccount:blue:default"


def deployment(gpus: int, owner: str = "") -> Object:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pods(gpus, restartPolicy="Always", **SCHEDULED)}
    return named("Deployment", {"selector": {"matchLabels": labels}, "template": template}, owner=owner)


def service(**spec: Any) -> Object:
    return named("Service", {"selector": {"app": "a"}, "ports": [{"port": 80}], **spec})


NO_QUEUE, BYPASS = "a job in a team's namespace needs a queue", "this object would bypass the queue for GPUs"
OWNED, PRIORITY = "an object with an owner would bypass the queue", "teams may not use this priority class"
SCHEDULER = f"set schedulerName: {COSCHEDULER}"
REACHABLE = "this Service would be reachable from outside the cluster"
RUNTIME = "this runtime class would bypass the queue"
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


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_rejects_these_objects(row: tuple[str, Object, str]) -> None:
    user, made, why = row
    assert why in refused(user, made)


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("row", ALLOWED.values(), ids=ALLOWED.keys())
def test_accepts_these_objects(row: tuple[str, Object]) -> None:
    assert refused(*row) == ""


@pytest.mark.usefixtures("policies")
def test_accepts_the_examples_of_the_page_for_teams() -> None:
    page = Path(paths.ROOT, "docs", "teams.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.+?)^```", page, re.DOTALL | re.MULTILINE)]
    assert [each["kind"] for each in blocks] == ["Job", "PyTorchJob", "RayJob", "AppWrapper"]
    for each in blocks:
        assert refused(ALICE, {**each, "metadata": {**each["metadata"], "namespace": "blue"}}) == ""


@pytest.mark.usefixtures("policies")
def test_the_page_for_teams_quotes_a_real_refusal() -> None:
    page = Path(paths.ROOT, "docs", "teams.md").read_text(encoding="utf-8")
    quoted = re.findall(r"denied request: (.+?)\n\n", page, re.DOTALL)
    assert len(quoted) == 1
    assert " ".join(quoted[0].split()) in " ".join(refused(ALICE, job(pods(1))).split())


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_policies_do_not_apply_to_other_namespaces(row: tuple[str, Object, str]) -> None:
    user, made, _ = row
    metadata = {**made["metadata"], "namespace": "elsewhere"}
    message = refused(user, {**made, "metadata": metadata})
    assert "ValidatingAdmissionPolicy" not in message


def patch_refused(user: str, name: str, metadata: Object) -> str:
    change = json.dumps({"metadata": metadata})
    return refusal(user, "patch", "job", name, "--namespace=blue", "--type=merge", f"--patch={change}")


def test_only_controllers_remove_a_queue_or_set_an_owner(policies: KubeClient) -> None:
    policies.create(job(pods(), name="waits"))
    forged = job(pods(), owner="Job")["metadata"]["ownerReferences"]
    without_queue = {"labels": {QUEUE_LABEL: None}}
    assert NO_QUEUE in patch_refused(ALICE, "waits", without_queue)
    assert OWNED in patch_refused(ALICE, "waits", {"ownerReferences": forged})
    assert patch_refused(ALICE, "waits", {"annotations": {"note": "mine"}}) == ""
    assert patch_refused(COLLECTOR, "waits", without_queue) == ""


def _checked(kube: KubeClient, policy: str) -> Object:
    found: Object = kube.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policy).get("status", {})
    return found if found.get("observedGeneration") else {}


def test_expressions_pass_the_type_check_of_the_api_server(policies: KubeClient) -> None:
    for name in (admission.QUEUES, admission.PODS):
        status = eventually(partial(_checked, policies, name), "they are type-checked")
        assert status.get("typeChecking", {}) == {}


def test_no_scheduler_is_required_if_none_is_installed() -> None:
    assert "schedulerName" not in json.dumps(admission.policies(None, ALL_GPUS, OF_NODE, HCA))


def test_the_policy_of_queues_applies_to_all_kinds_of_jobs() -> None:
    found = admission.policies(None, ALL_GPUS, OF_NODE, HCA)[admission.QUEUES]["matchConstraints"]["resourceRules"]
    kinds = {f"{rule['apiGroups'][0]}/{resource}" for rule in found for resource in rule["resources"]}
    assert kinds == {f"{name.partition('/')[0]}/{resource}" for name, resource in rights.FRAMEWORKS.items()}
