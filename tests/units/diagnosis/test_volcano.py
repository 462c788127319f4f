"""Gangs that Volcano does not let in, queues that take none, and jobs whose pods it deletes."""

from __future__ import annotations

import pytest

from diagnosis.cluster import Kind
from diagnosis.finding import Finding
from diagnosis.report import report
from diagnosis.volcano import QUEUE
from k8s.objects import Object
from tests.units.diagnosis import objects as make

QUOTA = "queue resource quota insufficient"
OVERUSED = "resource in cluster is overused"
LOOK = "kubectl describe queues.scheduling.volcano.sh team"
NOT_MADE = "its pods are not made yet"
HAS_ROOM = "nodes have room for it, and Volcano does not let it in: "


def queue(name: str = "team", state: str = "Open", **capability: str) -> tuple[Kind, Object]:
    """Returns a queue; `capability` has short names of resources."""
    names = {"cpu": "cpu", "gpu": "nvidia.com/gpu"}
    limits = {names[each]: most for each, most in capability.items()}
    spec = {"capability": limits} if limits else {}
    return QUEUE, {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"state": state}}


def refused(
    said: str, *more: tuple[Kind, Object], gpus: tuple[int, int] = (8, 8), phase: str = "Pending"
) -> list[Finding]:
    """Returns the findings for a job of two nodes in queue `team`; `said` is Volcano's event of its gang."""
    kind, gang = make.group()
    gang["spec"] = {"queue": "team", "minMember": 2, "minResources": {"cpu": "4", "nvidia.com/gpu": "16"}}
    gang["status"]["phase"] = phase
    nodes = [make.node(name, gpu=gpu, nics=8) for name, gpu in zip("ab", gpus, strict=True)]
    job = make.volcano_job(tasks=[{"replicas": 2, "template": make.worker("x")[1]}], schedulerName="volcano")
    events = [make.event((kind, gang), "Unschedulable", said)] if said else []
    return list(report(make.cluster(job, (kind, gang), *nodes, *events, *more), "ai", "train").findings)


NEVER, USED = "it never fits in Volcano's queue team: it asks for ", "the quota of its queue team is used up"


@pytest.mark.parametrize(
    ("said", "limits", "why", "lasts"),
    [
        (QUOTA, {"cpu": "8", "gpu": "8"}, f"{NEVER}16 nvidia.com/gpu, and its capability is 8", True),
        (f"{QUOTA}: insufficient cpu", {"cpu": "2500m"}, f"{NEVER}4 cpu, and its capability is 2500m", True),
        (QUOTA, {"cpu": "200", "gpu": "32"}, f"{USED} (its capability is 200 cpu, 32 nvidia.com/gpu)", False),
        (f"{QUOTA}: insufficient nvidia.com/gpu", {"cpu": "200"},
         f"{USED}: insufficient nvidia.com/gpu (its capability is 200 cpu; nvidia.com/gpu is not in its capability: "
         "unlimited, but none before Volcano 1.8.2)", False),
        (QUOTA, {}, USED, False),
    ],
)  # fmt: skip
def test_a_queue_is_reported_with_its_limits(said: str, limits: dict[str, str], why: str, lasts: bool) -> None:
    (finding,) = refused(said, queue(**limits))
    assert (finding.why, finding.lasts) == (why, lasts)


def test_earlier_refusals_of_a_gang_that_is_let_in_are_ignored() -> None:
    assert [each.why for each in refused(QUOTA, queue(gpu="8"), phase="Inqueue")] == [NOT_MADE]


def test_overuse_is_a_wrong_count_if_nodes_are_free() -> None:
    (finding,) = refused(f"{OVERUSED}: overused nvidia.com/gpu", queue())
    assert finding.why == f"{HAS_ROOM}its plugin overcommit counts the cluster as overused: overused nvidia.com/gpu"
    assert finding.fix.startswith("kubectl rollout restart -n volcano-system deployment/volcano-scheduler")


def test_free_nodes_may_be_promised_to_a_gang_that_is_not_placed() -> None:
    kind, other = make.group("olmo", "olmo")
    other["status"]["phase"] = "Inqueue"
    (finding,) = refused(OVERUSED, queue(), (kind, other))
    assert finding.why == f"{HAS_ROOM}it is promised to PodGroup ai/olmo, let in and not placed"


@pytest.mark.parametrize(
    ("said", "gpus", "names"),
    [(OVERUSED, (8, 0), ""), (f"{OVERUSED}: overused cpu", (8, 8), ": overused cpu")],
)
def test_where_nodes_lack_it_the_gang_waits_for_them(said: str, gpus: tuple[int, int], names: str) -> None:
    assert f"Volcano lets it in once nodes have room for it{names}" in [each.why for each in refused(said, gpus=gpus)]


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ([queue(state="Closed")], "Volcano's queue team is Closed"),
        ([queue(state="Closing")], "Volcano's queue team is Closing"),
        ([queue(state="Unknown")], "Volcano's queue team is Unknown"),
        ([queue("default")], "Volcano has no queue team"),
    ],
)
def test_a_queue_that_takes_no_job_is_reported_without_an_event(queues: list[tuple[Kind, Object]], why: str) -> None:
    (finding,) = refused("", *queues)
    assert (finding.why, finding.lasts) == (why, True)
    without_gang = make.cluster(make.volcano_job(queue="team"), *queues)
    assert report(without_gang, "ai", "train").findings == (finding,)


@pytest.mark.parametrize(("name", "why"), [("team", "Volcano has no queue team"), ("default", NOT_MADE)])
def test_only_the_default_queue_is_taken_to_exist_if_no_queue_is_found(name: str, why: str) -> None:
    (finding,) = report(make.cluster(make.volcano_job(queue=name)), "ai", "train").findings
    assert finding.why == why


@pytest.mark.parametrize(("state", "why"), [("Closed", "was closed"), ("Unknown", "is Unknown")])
def test_a_queue_is_to_be_opened_only_once_its_state_is_explained(state: str, why: str) -> None:
    (finding,) = refused("", queue(state=state))
    assert finding.fix == f"vcctl queue operate --action open --name team    # once it is known why it {why}"


def test_a_namespaces_quota_is_reported_as_volcano_logs_it() -> None:
    said = "resource quota insufficient, requested: map[pods:2], used: map[pods:9], limited: map[pods:10]"
    assert [each.why for each in refused(said, queue())] == [f"the scheduler says: {said}"]


@pytest.mark.parametrize(
    ("phase", "why"),
    [
        ("Restarting", "Volcano deletes its pods, and then starts it again (1 of 3 restarts spent: "),
        ("Aborting", "Volcano deletes its pods, since it is aborted (1 of 3 restarts spent: "),
        ("Terminating", "Volcano deletes its pods, since it is terminated (1 of 3 restarts spent: "),
        ("Completing", "Volcano deletes the pods that are left, since it is complete (1 of 3 restarts spent: "),
    ],
)
def test_a_job_whose_pods_volcano_deletes(phase: str, why: str) -> None:
    kind, job = make.volcano_job()
    job["status"] = {"state": {"phase": phase, "reason": "PodFailed", "message": "worker-0"}, "retryCount": 1}
    found = report(make.cluster((kind, job), make.worker("train-0", on="a")), "ai", "train").findings
    assert (found[0].why, found[0].passing) == (f"{why}PodFailed: worker-0)", phase != "Restarting")


def test_a_restarted_job_is_reported_with_its_restarts() -> None:
    kind, job = make.volcano_job(maxRetry=5)
    job["status"] = {"state": {"phase": "Running"}, "retryCount": 2}
    assert report(make.cluster((kind, job)), "ai", "train").remarks == (
        "Volcano has restarted it: 2 of 5 restarts spent",
    )


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pytorchjob_whose_gang_is_not_let_in_has_no_pods_yet(wrapped: bool) -> None:
    job = make.pytorch_job(owner="train" if wrapped else "", Created="True")
    job[1]["spec"]["pytorchReplicaSpecs"] = {
        "Worker": {"replicas": 2, "template": {"spec": make.worker("x")[1]["spec"]}}
    }
    group = make.group(owner="job-train")
    group[1]["status"]["conditions"] = [
        {"type": "Unschedulable", "status": "True", "message": "queue resource quota insufficient: gpu"}
    ]
    more = [make.app_wrapper(phase="Resuming")] if wrapped else []
    found = report(make.cluster(*more, job, group), "ai", "train").findings
    assert any(finding.why.startswith("there is no node of pool") for finding in found)
    free = [make.node(name, gpu=8, nics=8) for name in ("a", "b")]
    (finding,) = report(make.cluster(*more, job, group, *free), "ai", "train").findings
    assert finding.why == "the quota of its queue is used up: gpu"
