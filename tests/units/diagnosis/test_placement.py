"""Pods without a node: what the scheduler says, and what stands behind it on each node."""

from __future__ import annotations

import pytest

from diagnosis.cluster import CLAIM, STORAGE_CLASS, Cluster, Kind
from diagnosis.report import report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

VOLCANO_SAYS = (
    "0/3 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient nvidia.com/gpu."
)
"""As api/unschedule_info.go and actions/allocate of Volcano 1.10 put it together."""
SOON = ["waits: pods train-0 and train-1 are not placed yet", "do: kubectl describe pod -n ai train-0"]
"""Nothing is wrong."""


def told(*more: tuple[Kind, Object], workers: int = 2, tolerates: bool = True, said: str = "") -> list[str]:
    """What is said of a Volcano job of workers that have no node."""
    pods = [make.worker(f"train-{number}", tolerates=tolerates, said=said) for number in range(workers)]
    return lines(make.cluster(make.volcano_job(), *pods, *more))


def lines(cluster: Cluster) -> list[str]:
    found = report(cluster, "ai", "train")
    assert found.phase == "Pending"
    return make.told(found)


def free(name: str) -> tuple[Kind, Object]:
    return make.node(name, gpu=8, nics=8)


def test_the_schedulers_own_words_come_first() -> None:
    assert told(free("a"), free("b"), said=VOLCANO_SAYS) == [f"waits: the scheduler says: {VOLCANO_SAYS}"]


def test_the_words_of_a_scheduler_that_are_only_in_an_event() -> None:
    event = make.event(make.worker("train-0"), "FailedScheduling", "0/2 nodes are available: 2 Insufficient memory.")
    found = lines(make.cluster(make.volcano_job(), make.worker("train-0"), free("a"), free("b"), event))
    assert found == ["waits: the scheduler says: 0/2 nodes are available: 2 Insufficient memory."]


def test_what_volcano_writes_to_pods_that_would_fit_is_not_a_cause() -> None:
    said = "Pod ai/train-0 can possibly be assigned to a, once resource is released"
    event = make.event(make.worker("train-0"), "FailedScheduling", said)
    assert told(free("a"), free("b"), event, said=said) == SOON
    assert told(free("a"), free("b"), event) == SOON


def test_a_taint_that_the_pods_do_not_tolerate() -> None:
    assert told(free("a"), free("b"), tolerates=False) == [
        "waits: no toleration for taint sku=gpu:NoSchedule on nodes a and b",
        'do: add to the pod\'s spec.tolerations: {key: sku, operator: Equal, value: "gpu", effect: NoSchedule}    '
        "# for a workload of the stack, list it with all others in podOverrides.spec.tolerations",
    ]


def test_a_pool_without_nodes() -> None:
    look = "do: kubectl get nodes -L kubernetes.azure.com/agentpool"
    assert told()[:2] == [f"waits: there is no node of pool {make.POOL} yet", look]


def test_a_spot_pool_whose_nodes_azure_evicted() -> None:
    pod = make.worker("train-0")
    pod[1]["spec"]["tolerations"].append({"key": "kubernetes.azure.com/scalesetpriority", "operator": "Exists"})
    (finding,) = report(make.cluster(make.volcano_job(), pod), "ai", "train").findings
    assert "evicted Spot nodes; without autoscale: pulumi up --refresh" in finding.fix


def test_a_pool_without_nodes_that_have_a_label_which_the_pods_want() -> None:
    pod = make.worker("train-0")
    pod[1]["spec"]["nodeSelector"] = {"zone": "1"}
    found = lines(make.cluster(make.volcano_job(), pod, free("a")))
    assert found[:2] == [
        f"waits: there is no node of pool {make.POOL} with zone=1 yet",
        "do: kubectl get nodes -L zone,kubernetes.azure.com/agentpool",
    ]


def test_pods_that_go_anywhere_where_there_are_no_nodes_at_all() -> None:
    found = lines(make.cluster(make.volcano_job(), make.pod("train-0", owner="train")))
    assert found[0] == "waits: there is no node yet"


def test_devices_that_another_job_has_taken() -> None:
    other = [make.worker(f"olmo-{name}", "olmo", on=name) for name in ("a", "b")]
    assert told(free("a"), free("b"), *other) == ["waits: nvidia.com/gpu is taken by ai/olmo on nodes a and b"]


def test_what_has_ended_holds_nothing() -> None:
    other = make.worker("olmo-0", "olmo", on="a")
    other[1]["status"]["phase"] = "Succeeded"
    assert told(free("a"), free("b"), other) == SOON


def test_a_gang_that_is_larger_than_its_pool() -> None:
    found = told(free("a"), free("b"), workers=3)
    wanted = "3 pods want 8 nvidia.com/gpu, 8 nvidia.com/mlnxnics each"
    assert found == [f"waits: {wanted}, and the nodes that they may use have room for 2"]


@pytest.mark.parametrize(
    ("resource", "asked", "has", "shown"),
    [
        ("cpu", "300", "95820m", ("300 cpu", "95.82")),
        ("memory", "2Ti", "1800Gi", ("2048.0Gi memory", "1800.0Gi")),
        ("ephemeral-storage", "900Gi", "450Gi", ("900.0Gi ephemeral-storage", "450.0Gi")),
    ],
)
def test_a_pod_that_is_larger_than_each_node(resource: str, asked: str, has: str, shown: tuple[str, str]) -> None:
    pod, nodes = make.pod("train-0", owner="train"), [make.node("a", taints=()), make.node("b")]
    pod[1]["spec"]["containers"][0]["resources"] = {"requests": {resource: asked}}
    for _, each in nodes:
        each["status"]["allocatable"][resource] = has
    assert lines(make.cluster(make.job(), pod, *nodes)) == [
        f"waits: each pod requests {shown[0]}, and only {shown[1]} are allocatable on nodes a and b",
        f"do: lower the requests of each pod to less than {shown[1]} {resource}    "
        "# or add a pool with a larger VM size",
    ]


@pytest.mark.parametrize(
    ("resources", "fits"),
    [
        ({"requests": {"cpu": "500m"}, "limits": {"cpu": "300"}}, True),
        ({"limits": {"cpu": "300"}}, False),
        ({"requests": {"cpu": "64"}}, True),
    ],
)
def test_requests_are_compared_and_limits_are_their_default(resources: Object, *, fits: bool) -> None:
    pod, node = make.pod("train-0", owner="train"), make.node("a", taints=())
    pod[1]["spec"]["containers"][0]["resources"] = resources
    node[1]["status"]["allocatable"]["cpu"] = "64"
    assert ("only 64 are" in "".join(lines(make.cluster(make.job(), pod, node)))) != fits


def test_a_scheduler_that_does_not_exist() -> None:
    pod = make.pod("train-0", owner="train")
    pod[1]["spec"]["schedulerName"] = "volcanoo"
    placed = make.pod("other", on="a")
    assert lines(make.cluster(make.job(), pod, free("a"), placed)) == [
        "waits: no scheduler has looked at pod train-0, whose schedulerName is volcanoo; near: volcano",
        "do: create the pod again with schedulerName default-scheduler or volcano",
    ]


@pytest.mark.parametrize("known_by", ["a pod that it has placed", "its words", "an event"])
def test_a_scheduler_of_another_vendor_is_known_by_what_it_does(known_by: str) -> None:
    pod, placed = make.pod("train-0", owner="train"), make.pod("other", on="a")
    event = make.event(pod, "FailedScheduling" if known_by == "an event" else "Other", "no GPUs")
    if known_by == "its words":
        pod = make.pod("train-0", owner="train", said="no GPUs")
    if known_by == "a pod that it has placed":
        placed[1]["spec"]["schedulerName"] = "runai-scheduler"
    pod[1]["spec"]["schedulerName"] = "runai-scheduler"
    assert "schedulerName" not in "".join(lines(make.cluster(make.job(), pod, free("a"), placed, event)))


def test_many_nodes_are_counted() -> None:
    names = [f"n{number}" for number in range(5)]
    assert told(*map(free, names), tolerates=False)[0].endswith("on 5 nodes, as n0")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("queue resource quota insufficient", "the quota of its queue is used up"),
        (
            "resource in cluster is overused",
            "nodes have room for it, and Volcano does not let it in: "
            "its plugin overcommit counts the cluster as overused",
        ),
    ],
)
def test_a_gang_that_volcano_does_not_let_in_has_its_reason_on_its_group(said: str, expected: str) -> None:
    """It has no pods then; what they will be, the job's templates say."""
    template = make.worker("x")[1]
    job = make.volcano_job(tasks=[{"replicas": 2, "template": template}], schedulerName="volcano")
    reason = make.event(make.group(), "Unschedulable", said)
    (kind, found) = make.group()
    assert lines(make.cluster(job, (kind, found), reason, free("a"), free("b")))[0] == f"waits: {expected}"
    other = [make.worker(f"olmo-{name}", "olmo", on=name) for name in ("a", "b")]
    both = lines(make.cluster(job, (kind, found), reason, free("a"), free("b"), *other))
    assert both[-1] == "waits: nvidia.com/gpu is taken by ai/olmo on nodes a and b"


def test_a_queue_without_a_quota_of_its_own_is_not_blamed_for_devices_that_nodes_lack() -> None:
    """It has what all nodes offer: Volcano's words are the same (plugins/proportion)."""
    job = make.volcano_job(tasks=[{"replicas": 2, "template": make.worker("x")[1]}], schedulerName="volcano")
    reason = make.event(make.group(), "Unschedulable", "queue resource quota insufficient")
    found = lines(make.cluster(job, make.group(), reason, free("a"), make.node("b", gpu=7, nics=8)))
    assert found[0].startswith("waits: ")
    assert not [line for line in found if "quota" in line]


NO_TASKS = "{}/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable"
"""Of a gang without pods: an event says so each second (cache.go), and a condition (plugins/gang)."""


@pytest.mark.parametrize(
    ("phase", "before", "expected"),
    [
        ("Pending", [], ["waits: its pods are not made yet", "do: kubectl describe vcjob -n ai train"]),
        (
            "Pending",
            ["queue resource quota insufficient"],
            ["waits: the quota of its queue is used up", "do: kubectl describe queues"],
        ),
        (
            "Inqueue",
            ["queue resource quota insufficient"],
            ["waits: its pods are not made yet", "do: kubectl describe vcjob -n ai train"],
        ),
    ],
)
def test_what_volcano_says_of_a_gang_without_pods_tells_nothing(
    phase: str, before: list[str], expected: list[str]
) -> None:
    kind, group = make.group()
    condition = {"type": "Unschedulable", "status": "True", "message": NO_TASKS.format(2)}
    group["status"] = {"phase": phase, "conditions": [condition]}
    told = [*before, NO_TASKS.format(0)]
    events = [
        make.event((kind, group), "Unschedulable", said, f"2026-11-22T10:00:0{at}Z") for at, said in enumerate(told)
    ]
    job = make.volcano_job(tasks=[{"replicas": 2, "template": make.worker("x")[1]}], schedulerName="volcano")
    assert lines(make.cluster(job, (kind, group), *events, free("a"), free("b"))) == expected


def test_a_gang_without_pods_may_have_a_reason_all_the_same() -> None:
    origin = f"{NO_TASKS.format(0)}. Origin reason is train-1: {VOLCANO_SAYS}"
    kind, group = make.group()
    job = make.volcano_job(tasks=[{"replicas": 2, "template": make.worker("x")[1]}], schedulerName="volcano")
    found = lines(
        make.cluster(job, (kind, group), make.event((kind, group), "Unschedulable", origin), free("a"), free("b"))
    )
    assert found == [f"waits: the scheduler says: train-1: {VOLCANO_SAYS}"]


def test_a_scheduler_that_is_off() -> None:
    pods = [make.worker("train-0")]
    read = make.cluster(make.volcano_job(), *pods, free("a"), free("b"))
    off = Cluster(
        lambda kind, namespace: [obj for obj in read.all(kind, namespace) if "volcano" not in obj["metadata"]["name"]]
    )
    assert lines(off)[0] == "waits: Volcano's scheduler does not run"


def test_one_pods_placement_is_plainer_than_the_summary_of_its_gang() -> None:
    """Volcano tries one task, and writes the gang's state to the others (cache.go, RecordJobStatusEvent)."""
    gang = f"pod group is not ready, 2 Pending, 2 minAvailable. Origin reason is train-1: {VOLCANO_SAYS}"
    pods = [make.worker("train-0", said=gang), make.worker("train-1", said=VOLCANO_SAYS)]
    assert lines(make.cluster(make.volcano_job(), *pods, free("a"), free("b"))) == [
        f"waits: the scheduler says: {VOLCANO_SAYS}"
    ]


def test_what_one_pod_lacks_is_taken_out_of_the_state_of_its_gang() -> None:
    gang = f"pod group is not ready, 2 Pending, 2 minAvailable. Origin reason is train-1: {VOLCANO_SAYS}"
    assert told(free("a"), free("b"), said=gang) == [f"waits: the scheduler says: train-1: {VOLCANO_SAYS}"]


def test_the_state_of_a_gang_is_told_only_where_nothing_else_is_known() -> None:
    gang = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable"
    assert told(free("a"), free("b"), said=gang) == [f"waits: the scheduler says: {gang}"]
    other = [make.worker(f"olmo-{name}", "olmo", on=name) for name in ("a", "b")]
    found = told(free("a"), free("b"), *other, said=gang)
    assert found == ["waits: nvidia.com/gpu is taken by ai/olmo on nodes a and b"]


COSCHEDULER = "scheduler-plugins-scheduler"
LACKS = (
    "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient nvidia.com/gpu. "
    "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found."
)
REJECTED = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
ALONE = (
    "0/3 nodes are available: pre-filter pod train-0 cannot find enough sibling pods, current pods number: 1, "
    "minMember of group: 2."
)
"""As scheduler-plugins 0.33 writes them to pods of a gang."""


def coscheduled(*more: tuple[Kind, Object], said: tuple[str, ...], runs: bool = True) -> list[str]:
    """What is said of a Job of such pods, which have no node."""
    pods = [make.worker(f"train-{number}", said=text) for number, text in enumerate(said)]
    for _, found in pods:
        found["spec"]["schedulerName"] = COSCHEDULER
    scheduler = make.pod("scheduler", labels={"component": "scheduler"}, namespace="scheduler-plugins", ready=runs)
    return lines(make.cluster(make.job(parallelism=2), scheduler, *pods, *more))


def test_coscheduling_too_says_what_one_pod_lacks_and_rejects_the_others() -> None:
    assert coscheduled(free("a"), free("b"), said=(REJECTED, LACKS)) == [f"waits: the scheduler says: {LACKS}"]


@pytest.mark.parametrize("said", [REJECTED, ALONE])
def test_what_coscheduling_says_of_a_gang_is_told_only_where_nothing_else_is_known(said: str) -> None:
    assert coscheduled(free("a"), free("b"), said=(said, said)) == [f"waits: the scheduler says: {said}"]
    taken = make.worker("olmo-a", "olmo", on="a")
    found = coscheduled(free("a"), free("b"), taken, said=(said, said))
    assert found == ["waits: nvidia.com/gpu is taken by ai/olmo on node a"]


def test_what_a_pod_lacked_is_told_though_coscheduling_wrote_the_gangs_state_over_it() -> None:
    pod = make.worker("train-0")
    earlier = make.event(pod, "FailedScheduling", "0/3 nodes are available: 3 Too many pods.", "2026-11-22T09:00:00Z")
    last = make.event(pod, "FailedScheduling", LACKS)
    rejected = make.event(pod, "FailedScheduling", REJECTED, "2026-11-22T11:00:00Z")
    found = coscheduled(free("a"), free("b"), earlier, last, rejected, said=(REJECTED, REJECTED))
    assert found == [f"waits: the scheduler says: {LACKS}"]


def test_a_scheduler_of_scheduler_plugins_that_is_off() -> None:
    found = coscheduled(free("a"), free("b"), said=("", ""), runs=False)
    assert found[:2] == [
        "waits: the scheduler of scheduler-plugins does not run",
        "do: kubectl get pods -A --selector component=scheduler",
    ]


def test_system_nodes_are_no_matter_to_pods_that_want_devices() -> None:
    """Also where the pods name no pool."""
    kind, system = make.node("s", taints=())
    system["metadata"]["labels"]["kubernetes.azure.com/mode"] = "system"
    other = [make.worker(f"olmo-{name}", "olmo", on=name) for name in ("a", "b")]
    assert told(free("a"), free("b"), (kind, system), *other)[0].endswith("taken by ai/olmo on nodes a and b")


def claim(phase: str = "Pending") -> tuple[Kind, Object]:
    metadata = {"name": "work", "uid": "claim", "namespace": "ai"}
    return CLAIM, {"metadata": metadata, "status": {"phase": phase}}


def mounting(*more: tuple[Kind, Object]) -> list[str]:
    """Of a job whose pods mount the claim."""
    pods = [make.worker(f"train-{number}") for number in range(2)]
    for _, pod in pods:
        pod["spec"]["volumes"] = [{"name": "own"}, {"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]
    return lines(make.cluster(make.volcano_job(), *pods, free("a"), free("b"), *more))


@pytest.mark.parametrize("reason", ["VolumeMismatch", "ClaimLost", "ClaimMisbound", "FailedBinding"])
def test_each_event_of_a_claim_without_a_volume_is_reported(reason: str) -> None:
    assert mounting(claim(), make.event(claim(), reason, "why"))[0] == "waits: claim work has no volume: why"


def test_a_class_that_does_not_exist_is_told_of_the_claim() -> None:
    why = 'storageclass.storage.k8s.io "fast" not found'
    waits = make.event(claim(), "ExternalProvisioning", "waiting for a volume", at="2026-11-22T11:00:00Z")
    classes = [(STORAGE_CLASS, {"metadata": {"name": name}}) for name in ("fast-csi", "managed")]
    assert mounting(claim(), make.event(claim(), "ProvisioningFailed", why), waits, *classes) == [
        f"waits: claim work has no volume: {why}; near: fast-csi",
        "do: kubectl get storageclass    # a claim keeps its class: delete it and create another",
    ]


def test_a_claim_that_does_not_exist_is_reported_once() -> None:
    said = (
        '0/2 nodes are available: persistentvolumeclaim "wrok" not found. preemption: 0/2 nodes are available: '
        "2 Preemption is not helpful for scheduling."
    )
    assert told(free("a"), free("b"), claim(), said=said) == [
        "waits: claim wrok does not exist; near: work",
        "do: kubectl get pvc -n ai    # create claim wrok, or name another in the pod's spec.volumes",
    ]


def test_a_claim_with_its_volume_is_no_cause() -> None:
    assert mounting(claim("Bound"), make.event(claim(), "ProvisioningFailed", "of earlier")) == SOON


def test_a_disk_that_waits_for_its_pod_is_no_cause() -> None:
    assert mounting(claim(), make.event(claim(), "WaitForFirstConsumer", "waiting for first consumer")) == SOON
