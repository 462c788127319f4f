from __future__ import annotations

import pytest

from diagnosis.cluster import POD, PYTORCH_JOB, VOLCANO_JOB, Cluster, Kind
from diagnosis.finding import Finding
from diagnosis.report import Report, report
from k8s.objects import Object
from tests.unit.diagnosis import objects as make


def ended(phase: str, *pods: tuple[Kind, Object]) -> Report:
    kind, job = make.job()
    job["status"] = {"conditions": [{"type": phase, "status": "True", "message": "as it is"}]}
    return make.diagnosed((kind, job), *pods)


def test_a_failed_job_shows_verdicts_and_the_log_of_a_failed_pod() -> None:
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


def test_a_failed_job_without_a_verdict_shows_exit_codes() -> None:
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


def test_reads_pods_once() -> None:
    reads: list[str] = []
    pods = [make.worker(f"train-{number}")[1] for number in range(2)]

    def read(kind: Kind, namespace: str) -> list[Object]:
        if kind == POD:
            reads.append(namespace)
        return pods if kind == POD else [make.volcano_job()[1]] if kind == VOLCANO_JOB else []

    report(Cluster(read), "ai", "train")
    assert reads == [""]


@pytest.mark.parametrize(
    ("workload", "called", "label"),
    [
        (make.ray_job(), "KubeRay", "app.kubernetes.io/component"),
        (make.app_wrapper(), "AppWrapper's controller", "app.kubernetes.io/name"),
        ((PYTORCH_JOB, {"metadata": {"name": "train", "namespace": "ai"}}), "the training operator", "control-plane"),
    ],
)
def test_a_workload_without_a_running_controller(workload: tuple[Kind, Object], called: str, label: str) -> None:
    (finding,) = make.diagnosed(workload).findings
    assert finding.why == f"{called} does not run"
    value = finding.fix.rpartition("=")[2]
    at_work = make.pod("operator", labels={label: value}, namespace="operators", ready=True)
    assert make.diagnosed(workload, at_work).findings[0].passing


def test_lines_fit_a_terminal_except_commands() -> None:
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
