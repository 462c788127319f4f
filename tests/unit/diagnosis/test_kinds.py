from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import (
    DEPLOYMENT,
    POD,
    QUEUED,
    RAY_SERVICE,
    STATEFUL_SET,
    TRAINING_JOBS,
    WORKLOADS,
    Cluster,
    Kind,
)
from diagnosis.report import names, report
from diagnosis.shapes import REPLICA_SPECS
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

GATE = [{"name": "kueue.x-k8s.io/admission"}]
NO_QUOTA = "it has no quota in its queue queue: insufficient unused quota"
KINDS = [(name, kind, field) for (name, kind), field in zip(TRAINING_JOBS.items(), REPLICA_SPECS, strict=True)]


def workload(kind: Kind, *, spec: Object | None = None, **status: Any) -> tuple[Kind, Object]:
    return kind, {"metadata": make.metadata("train"), "spec": spec or {}, "status": status}


def conditions(**states: str) -> list[Object]:
    return [{"type": kind, "status": "True", "reason": kind, "message": message} for kind, message in states.items()]


def held(owner: str, name: str = "job-train") -> tuple[Kind, Object]:
    kind, found = make.queued("queue", "insufficient unused quota", owner=owner)
    found["metadata"]["name"] = name
    return kind, found


@pytest.mark.parametrize(("name", "kind", "field"), KINDS)
@case_table(__file__, "training_operator")
def test_jobs_of_the_training_operator_share_conditions(
    name: str, kind: Kind, field: str, states: dict[str, str], head: str, why: str | None
) -> None:
    found = make.diagnosed(workload(kind, spec={field: {}}, conditions=conditions(**states)))
    assert (found.kind, found.head()) == (name, [f"train: {head}"])
    assert (why in [each.why for each in found.findings]) if why else not found.findings


@pytest.mark.parametrize(("name", "kind", "field"), KINDS)
def test_a_gang_without_pods_has_those_of_its_templates(name: str, kind: Kind, field: str) -> None:
    limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    rank = {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", **limits}]}}}
    job = workload(kind, spec={field: {"Worker": rank}}, conditions=conditions(Created=""))
    policy = make.cluster_policy()
    found = make.diagnosed(job, make.group(), make.node("a", taints=(), gpu=8), policy)
    assert "2 pods request 8 nvidia.com/gpu each, and only 1 fit on the nodes that they may use" in make.shown(found)[0]


def gated(name: str, owner: str = "", **labels: str) -> tuple[Kind, Object]:
    kind, found = make.pod(name, owner=owner, labels={f"kueue.x-k8s.io/{key}": each for key, each in labels.items()})
    found["spec"]["schedulingGates"] = GATE
    return kind, found


def test_kueue_holds_back_pods_pod_groups_and_stateful_sets() -> None:
    one = gated("train"), held("ai/train")
    group = gated("train", **{"pod-group-name": "group"}), held("other", "group")
    of_set = stateful(0), gated("train-0", "train", **{"pod-group-name": "set"}), held("train", "set")
    for objects in (one, group, of_set):
        assert make.diagnosed(*objects).findings[0].why == NO_QUOTA


def stateful(ready: int, revisions: str = "aa", updated: int = 2, **strategy: Any) -> tuple[Kind, Object]:
    spec = {"replicas": 2, "updateStrategy": strategy}
    status: Object = {"readyReplicas": ready, "currentRevision": revisions[0], "updateRevision": revisions[1]}
    return workload(STATEFUL_SET, spec=spec, **status, updatedReplicas=updated)


@pytest.mark.parametrize(
    ("found", "head"),
    [
        (stateful(2), "Available"),
        (stateful(1), "Pending 1 of 2 replicas are ready"),
        (stateful(2, "ab", 1), "Pending 1 of 2 replicas have the newest version"),
        (stateful(2, "ab", 1, rollingUpdate={"partition": 1}), "Available"),
        (stateful(2, "ab", 0, type="OnDelete"), "Available"),
        (workload(STATEFUL_SET, spec={"replicas": 0}), "Available"),
        (workload(STATEFUL_SET), "Pending 0 of 1 replicas are ready"),
    ],
)
def test_a_stateful_set_is_available_once_its_rollout_has_finished(found: tuple[Kind, Object], head: str) -> None:
    assert make.diagnosed(found).head() == [f"train: {head}"]


def test_lists_workloads_of_all_kinds_and_pods_without_an_owner() -> None:
    objects = [workload(kind) for kind in WORKLOADS.values() if kind != POD]
    for (_, each), name in zip(objects, WORKLOADS, strict=False):
        each["metadata"] |= {"name": name, "uid": name}
    pods = [make.pod("bare"), make.pod("made", owner="job"), make.pod("foreign", owner="unknown")]
    cluster = make.cluster(*objects, *pods)
    assert names(cluster, "ai") == sorted([*(each for each in WORKLOADS if each != "pod"), "bare"])
    assert report(cluster, "ai", "made").kind == "pod"


def test_reads_each_kind_once_and_pods_first() -> None:
    reads: list[Kind] = []

    def read(kind: Kind, namespace: str) -> list[Object]:
        reads.append(kind)
        return []

    assert names(Cluster(read), "ai") == []
    assert reads[0] == POD
    assert len(reads) == len(set(reads)) == 1 + sum(1 + len(kind.others) for kind in WORKLOADS.values())
    assert QUEUED not in reads


def deployment(counts: tuple[int, ...] = (), *conditions: Object) -> tuple[Kind, Object]:
    """`counts` are all, updated and unavailable replicas."""
    status: Object = dict(zip(("replicas", "updatedReplicas", "unavailableReplicas"), counts, strict=False))
    return workload(DEPLOYMENT, conditions=[{"type": "Available", "status": "True"}, *conditions], **status)


@case_table(__file__, "rollouts")
def test_a_deployment_is_available_once_its_rollout_has_finished(
    counts: tuple[int, ...], conditions: list[Object], head: str
) -> None:
    old = make.pod("train-x", owner="train", on="a", ready=True)
    new = make.pod("train-y", owner="train", on="a", **make.waiting("CrashLoopBackOff"))
    found = make.diagnosed(deployment(counts, *conditions), old, new)
    assert " ".join(found.head()) == f"train: {head}"
    assert ("pod train-y: CrashLoopBackOff" in [each.why for each in found.findings]) == ("Pending" in head)


HEAD = make.pod("head", owner="cluster-train", on="a", ready=True)
INITIALIZING = ("False", "Initializing", "RayService is initializing")
SERVES = ("True", "NonZeroServeEndpoints", "Number of serve endpoints is greater than 0")
RETRIED = "it has failed 3 times in a row"


def service(ready: tuple[str, ...] = (), *, suspend: bool = False, **status: Any) -> tuple[Kind, Object]:
    known = [dict(zip(("type", "status", "reason", "message"), ("Ready", *ready), strict=True))] if ready else []
    return workload(RAY_SERVICE, spec={"rayClusterConfig": {"suspend": suspend}}, conditions=known, **status)


def serving(state: str, message: str = "", **deployments: tuple[str, str]) -> Object:
    each = {name: {"status": of, "message": why} for name, (of, why) in deployments.items()}
    application = {"status": state, "message": message, "serveDeploymentStatuses": each}
    return {"rayClusterName": "train-abcde", "applicationStatuses": {"llm": application}}


@pytest.mark.parametrize(
    ("application", "why", "passing"),
    [
        (serving("RUNNING", v=("HEALTHY", "")), "", True),
        (serving("DEPLOYING"), "DEPLOYING in RayCluster train-abcde", True),
        (serving("DEPLOY_FAILED", "import error"), "DEPLOY_FAILED in RayCluster train-abcde: import error", False),
        (
            serving("DEPLOY_FAILED", "['v'] are UNHEALTHY", v=("DEPLOY_FAILED", RETRIED), w=("HEALTHY", "")),
            f"DEPLOY_FAILED in RayCluster train-abcde: v DEPLOY_FAILED: {RETRIED}",
            False,
        ),
        (serving("UNHEALTHY", v=("UNHEALTHY", "no")), "UNHEALTHY in RayCluster train-abcde: v UNHEALTHY: no", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("ready", "place"), [(INITIALIZING, "pendingServiceStatus"), (SERVES, "activeServiceStatus")])
def test_shows_the_state_of_a_serve_application(
    application: Object, why: str, passing: bool, ready: tuple[str, ...], place: str
) -> None:
    status: Object = {place: application}
    found = make.diagnosed(service(ready, **status), make.ray_cluster(), HEAD).findings
    assert [each.why for each in found] == ([f"Ray Serve's application llm is {why}"] if why else [])
    assert all(each.passing == passing for each in found)
