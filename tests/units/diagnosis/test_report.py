"""Workloads as a whole: how they fare, and what is told of them."""

from __future__ import annotations

import pytest

from diagnosis.cluster import DEPLOYMENT, POD, PYTORCH_JOB, REPLICA_SET, VOLCANO_JOB, Cluster, Kind
from diagnosis.finding import Finding
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

QUOTA = (
    'Error creating: pods "train-" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2'
)
"""As the Job controller and Kubernetes' quota plugin word it."""
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}


def test_a_workload_that_is_not_there() -> None:
    assert report(make.cluster(), "ai", "train").lines() == ["train: Gone there is no such object in the cluster"]


def test_a_workload_of_the_same_name_elsewhere_is_another() -> None:
    assert report(make.cluster(make.job()), "other", "train").phase == "Gone"


def ended(phase: str, *pods: tuple[Kind, Object]) -> Report:
    """How a Job is told that has ended so."""
    kind, job = make.job()
    job["status"] = {"conditions": [{"type": phase, "status": "True", "message": "as it is"}]}
    return report(make.cluster((kind, job), *pods), "ai", "train")


def test_a_failed_job_is_told_with_its_verdicts_and_the_log_of_a_pod_that_failed() -> None:
    states: Object = {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 0}}}]}
    good = make.pod("train-0", owner="train", on="a", phase="Succeeded", **states)
    bad = make.pod("train-1", owner="train", on="b", phase="Failed", **states)
    lines = ["VERDICT: PASS; a\n", "VERDICT: FAIL slow; b\n", "training\n"]
    assert ended("Failed", good, bad).judged(lines, ["error: no such node"]).lines() == [
        "train: Failed as it is",
        "  VERDICT: FAIL slow; b",
        "  VERDICT: PASS; a",
        "  a log cannot be read: error: no such node",
        "  look at it: kubectl logs -n ai train-1",
    ]


def test_a_failed_job_without_a_verdict_is_told_with_its_exit_codes() -> None:
    def main(code: int, reason: str) -> Object:
        return {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}}]}

    states = [main(127, "Error"), main(127, "Error"), main(137, "OOMKilled"), main(0, "Completed")]
    pods = [make.pod(f"p{i}", owner="train", on="a", phase="Failed", **state) for i, state in enumerate(states)]
    found = ended("Failed", *pods)
    assert found.lines()[1:-1] == [
        "  pods p0 and p1: container main ended with exit code 127",
        "  pod p2: container main ended with exit code 137 (OOMKilled)",
    ]
    assert found.judged(["VERDICT: FAIL slow"]).lines()[1:-1] == ["  VERDICT: FAIL slow"]


def test_the_log_of_a_pod_that_failed_may_be_its_init_containers() -> None:
    init = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in (("one", 0), ("two", 1))]
    main = [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]
    pod = make.pod("train-0", owner="train", on="a", phase="Failed", initContainerStatuses=init, containerStatuses=main)
    assert ended("Failed", pod).log == "kubectl logs -n ai train-0 -c two"


def test_of_several_containers_the_log_is_of_the_one_that_failed_first() -> None:
    ends = (("load-generator", 1, "10:00:09"), ("idle", 0, "10:00:01"), ("vllm", 1, "10:00:08"))
    states = [
        {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": f"2026-11-25T{at}Z"}}}
        for name, code, at in ends
    ]
    pod = make.pod("train-0", owner="train", on="a", phase="Failed", containerStatuses=states)
    assert ended("Failed", pod).log == "kubectl logs -n ai train-0 -c vllm"


def test_a_job_in_an_appwrapper_is_told_with_its_pods() -> None:
    kind, job = make.job()
    job["metadata"] |= {"uid": "inner", "ownerReferences": make.owned_by("train")}
    states: Object = {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}
    pod = make.pod("train-0", owner="inner", on="a", phase="Failed", **states)
    found = report(make.cluster(make.app_wrapper(phase="Failed"), (kind, job), pod), "ai", "train")
    assert found.kind == "appwrapper"
    assert found.exits == ("pod train-0: container main ended with exit code 3",)


def test_a_container_that_could_not_start_has_a_message_and_no_log() -> None:
    why = 'exec: "train.sh": executable file not found in $PATH'
    start = {"terminated": {"exitCode": 128, "reason": "StartError", "message": why}}
    pod = make.pod(
        "train-0", owner="train", on="a", phase="Failed", containerStatuses=[{"name": "main", "state": start}]
    )
    assert [line.strip() for line in ended("Failed", pod).lines()[1:]] == [
        "pod train-0: container main ended with exit code 128 (StartError: exec:",
        '"train.sh": executable file not found in $PATH)',
        "look at it: kubectl describe pod -n ai train-0",
    ]


def test_a_pod_that_never_ran_has_no_log() -> None:
    said: Object = {"reason": "UnexpectedAdmissionError", "message": "no devices"}
    pods = [make.pod(f"train-{number}", owner="train", on="a", phase="Failed", **said) for number in range(3)]
    assert ended("Failed", *pods).lines()[1:] == [
        "  3 pods, as train-0: UnexpectedAdmissionError: no devices",
        "  look at it: kubectl describe pod -n ai train-0",
    ]


def test_a_job_whose_pods_are_gone_has_no_log() -> None:
    assert ended("Failed").lines() == ["train: Failed as it is"]


def test_a_job_that_is_done_has_nothing_to_look_at_but_what_is_said_of_its_pods() -> None:
    faked: Object = {"reason": "Faked", "message": "image mine:1 has no recipe"}
    pod = make.pod("train-0", owner="train", on="a", phase="Succeeded", **faked)
    assert ended("Complete", pod).lines() == [
        "train: Complete as it is",
        "  pod train-0: Faked: image mine:1 has no recipe",
    ]


def test_a_pod_that_runs_is_reported_as_faked() -> None:
    faked = make.pod("train", on="a", ready=True, reason="Faked", message="image mine:1 has no recipe")
    expected = ["train: Running", "  pod train: Faked: image mine:1 has no recipe"]
    assert report(make.cluster(faked), "ai", "train").lines() == expected


def test_one_that_is_done_is_not_looked_at_further() -> None:
    kind, job = make.job()
    job["status"] = {"conditions": [{"type": "Complete", "status": "True", "message": "as it should"}]}
    pod = make.pod("train-0", owner="train", on="a", **make.waiting("ErrImagePull", "not found"))
    assert report(make.cluster((kind, job), pod), "ai", "train").lines() == ["train: Complete as it should"]


def test_pods_of_a_deployment_are_those_of_its_replica_sets() -> None:
    deployment = {"metadata": {"name": "train", "uid": "train", "namespace": "ai"}, "spec": {}, "status": {}}
    replicas = {"metadata": {"name": "rs", "uid": "rs", "namespace": "ai", "ownerReferences": make.owned_by("train")}}
    pod = make.pod("train-x", owner="rs", on="a", **make.waiting("CrashLoopBackOff"))
    found = report(make.cluster((DEPLOYMENT, deployment), (REPLICA_SET, replicas), pod), "ai", "train")
    assert (found.kind, found.findings[0].why) == ("deployment", "pod train-x: CrashLoopBackOff")


def test_pods_of_another_workload_whose_name_begins_alike_are_not_its_own() -> None:
    other = make.pod("train-data-0", owner="train-data", on="a", **make.waiting("CrashLoopBackOff"))
    found = report(
        make.cluster(make.job(template=make.worker("x")[1]), other, make.node("a", gpu=8, nics=8)), "ai", "train"
    )
    assert make.told(found) == ["waits: its pods are not made yet", "do: kubectl describe job -n ai train"]


def test_a_quota_that_keeps_its_pods_from_being_made() -> None:
    job = make.job(parallelism=1, template=make.worker("x")[1])
    refused = make.event(job, "FailedCreate", QUOTA)
    found = report(make.cluster(job, refused, make.node("a", gpu=8, nics=8)), "ai", "train")
    assert make.told(found) == [f"waits: {QUOTA}", "do: kubectl get events -n ai"]


def test_a_suspended_job() -> None:
    job = make.job(suspend=True, template=make.worker("x")[1])
    assert report(make.cluster(job), "ai", "train").lines()[1] == "  waits: it is suspended"


def test_one_that_kueue_has_admitted_and_somebody_suspends_is_suspended() -> None:
    job = make.job(suspend=True, template=make.worker("x")[1])
    found = report(make.cluster(job, make.queued("main", "", reserved="True")), "ai", "train")
    assert make.told(found)[0] == "waits: it is suspended"


def test_pods_are_read_once_for_a_second_read_might_find_them_elsewhere() -> None:
    reads: list[str] = []
    pods = [make.worker(f"train-{number}")[1] for number in range(2)]

    def read(kind: Kind, namespace: str) -> list[Object]:
        if kind == POD:
            reads.append(namespace)
        return pods if kind == POD else [make.volcano_job()[1]] if kind == VOLCANO_JOB else []

    report(Cluster(read), "ai", "train")
    assert reads == [""]


def test_volcanos_controllers_are_off() -> None:
    job = make.volcano_job(tasks=[])
    off = Cluster(lambda kind, namespace: [job[1]] if kind == VOLCANO_JOB else [])
    assert report(off, "ai", "train").lines()[1] == "  waits: Volcano's controllers do not run"


@pytest.mark.parametrize(
    ("workload", "called", "label"),
    [
        (make.ray_job(), "KubeRay", "app.kubernetes.io/component"),
        (make.app_wrapper(), "AppWrapper's controller", "app.kubernetes.io/name"),
        ((PYTORCH_JOB, {"metadata": {"name": "train", "namespace": "ai"}}), "the training operator", "control-plane"),
    ],
)
def test_a_workload_that_no_controller_has_looked_at(workload: tuple[Kind, Object], called: str, label: str) -> None:
    (finding,) = report(make.cluster(workload), "ai", "train").findings
    assert finding.why == f"{called} does not run"
    value = finding.fix.rpartition("=")[2]
    at_work = make.pod("operator", labels={label: value}, namespace="operators", ready=True)
    assert report(make.cluster(workload, at_work), "ai", "train").findings[0].passing


def test_lines_fit_a_terminal_and_commands_stay_whole_to_be_copied() -> None:
    why = (
        "0/3 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient nvidia.com/gpu."
    )
    command = "kubectl get pods -A -o wide --field-selector spec.nodeName=aks-gpu4082-30870709-vmss000001"
    assert Finding(why, f"{command}    # all of them must end").lines() == [
        "  waits: 0/3 nodes are unavailable: 1 node(s) didn't match Pod's node",
        "         affinity/selector, 2 Insufficient nvidia.com/gpu.",
        f"    do: {command}",
        "        # all of them must end",
    ]


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        ("Resuming", "Pending"),
        ("Running", "Running"),
        ("Resetting", "Pending"),
        ("Succeeded", "Succeeded"),
        ("Failed", "Failed"),
    ],
)
def test_an_appwrapper_is_told_by_its_phase_and_with_the_pods_of_what_it_wraps(phase: str, told: str) -> None:
    main: Object = {"containerStatuses": [{"name": "pytorch", "state": {"terminated": {"exitCode": 2}}}]}
    pod = make.pod("train-master-0", owner="job-train", on="a", phase="Failed", **main)
    found = report(make.cluster(make.app_wrapper(phase=phase), make.pytorch_job(owner="train"), pod), "ai", "train")
    assert (found.kind, found.phase) == ("appwrapper", told)
    if told == "Failed":
        assert "  pod train-master-0: container pytorch ended with exit code 2" in found.lines()


def test_one_that_waits_for_quota_is_told_in_kueues_words() -> None:
    waits = make.queued("default-queue", "insufficient quota for nvidia.com/gpu")
    for held in (make.app_wrapper(suspend=True), make.pytorch_job("train", Suspended="True")):
        kueues = make.queued("default-queue", "insufficient quota", owner=held[1]["metadata"]["uid"])
        (finding,) = report(make.cluster(held, waits, kueues), "ai", "train").findings
        assert "it has no quota in its queue default-queue: insufficient quota" in finding.lines()[0]


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ({"Created": "True"}, "Pending"),
        ({"Created": "True", "Running": "True"}, "Running"),
        ({"Running": "False", "Succeeded": "True"}, "Succeeded"),
        ({"Running": "False", "Failed": "True"}, "Failed"),
    ],
)
def test_a_pytorchjob_is_told_by_its_conditions(conditions: dict[str, str], told: str) -> None:
    assert report(make.cluster(make.pytorch_job(**conditions)), "ai", "train").phase == told


@pytest.mark.parametrize(
    ("deployed", "job", "told"),
    [
        ("", "", "Pending"),
        ("Initializing", "", "Pending"),
        ("Running", "RUNNING", "Running"),
        ("Retrying", "", "Pending"),
        ("Complete", "SUCCEEDED", "Succeeded"),
        ("Complete", "STOPPED", "Terminated"),
        ("Failed", "FAILED", "Failed"),
        ("ValidationFailed", "", "Failed"),
    ],
)
def test_a_rayjob_is_told_by_how_far_kuberay_and_its_job_are(deployed: str, job: str, told: str) -> None:
    """Its submitter is a Job of the same name."""
    kind, submitter = make.job()
    submitter["metadata"] |= {"uid": "submitter", "ownerReferences": make.owned_by("train")}
    found = report(make.cluster((kind, submitter), make.ray_job(deployed, job)), "ai", "train")
    assert (found.kind, found.phase) == ("rayjob", told)


def test_pods_of_a_rayjob_are_its_clusters_and_its_submitters() -> None:
    kind, submitter = make.job()
    submitter["metadata"] |= {"uid": "submitter", "ownerReferences": make.owned_by("train")}
    states: Object = {"containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]}
    pods = [make.pod(owner, owner=owner, on="a", phase="Failed", **states) for owner in ("cluster-train", "submitter")]
    job = make.ray_job("Failed", "FAILED", message="Job entrypoint command failed")
    found = report(make.cluster(job, make.ray_cluster(), (kind, submitter), *pods), "ai", "train")
    assert found.lines() == [
        "train: Failed Job entrypoint command failed",
        "  pods cluster-train and submitter: container main ended with exit code 1",
        "  look at it: kubectl logs -n ai cluster-train",
    ]


def test_a_rayjob_that_waits_for_quota_is_told_in_kueues_words() -> None:
    held = (make.ray_job("Suspended", suspend=True), make.queued("default-queue", "insufficient quota"))
    (finding,) = report(make.cluster(*held), "ai", "train").findings
    assert "it has no quota in its queue default-queue: insufficient quota" in finding.lines()[0]
