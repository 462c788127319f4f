from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from simulator.command import waiting
from simulator.command.diagnosed import Finding, Report
from simulator.command.jobs import Workload

Written = list[tuple[float, str]]
Watch = Callable[..., tuple[list[Workload], Written]]
OUTCOMES = {"Pending": "pending", "Running": "running", "Complete": "succeeded"}


def cause(why: str, **flags: bool) -> Finding:
    return Finding(why, f"  waits: {why}", **flags)


MISSING = cause("its registry does not have the image olmo:1", lasts=True)
LACKING = cause("the scheduler reports: 2 Insufficient nvidia.com/gpu.")
TAKEN = cause("nvidia.com/gpu is taken by ai/metaseq on nodes a and b")


def olmo(phase: str = "Pending", *findings: Finding, name: str = "olmo") -> Workload:
    report = Report(name, phase, OUTCOMES[phase], f"{name}: {phase}", findings=findings)
    return Workload(name, "ai", "kubectl logs", "python -m diagnosis", ends=True, report=report)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Each state lasts some seconds. Returns the output with its times."""

    def run(*states: tuple[int, Workload]) -> tuple[list[Workload], Written]:
        now, written = 0.0, Written()
        looks = (workload for times, workload in states for _ in range(times))
        seconds = itertools.count()

        def look() -> list[Workload]:
            nonlocal now
            now = next(seconds)
            return [next(looks)]

        monkeypatch.setattr(time, "monotonic", lambda: now)
        found = waiting.wait(look, 600, lambda text: written.append((now, text)))
        assert not list(looks)
        return found, written

    return run


def test_reports_a_cause_immediately_and_when_it_changes(watch: Watch) -> None:
    _, written = watch((5, olmo("Pending", LACKING)), (5, olmo("Pending", TAKEN)), (1, olmo("Complete")))
    assert written == [
        (0, "olmo: Pending\n  waits: the scheduler reports: 2 Insufficient nvidia.com/gpu."),
        (5, "olmo: Pending\n  waits: nvidia.com/gpu is taken by ai/metaseq on nodes a and b"),
        (10, "olmo: Complete"),
    ]


def test_reports_changing_counts_of_a_scheduler_once(watch: Watch) -> None:
    counts = (
        "1 Insufficient nvidia.com/gpu, 1 Insufficient nvidia.com/mlnxnics.",
        "2 Insufficient nvidia.com/mlnxnics.",
    )
    others = [cause(f"the scheduler reports: {count}") for count in counts]
    _, written = watch(
        (3, olmo("Pending", LACKING)), *((3, olmo("Pending", each)) for each in others), (1, olmo("Complete"))
    )
    assert written == [
        (0, "olmo: Pending\n  waits: the scheduler reports: 2 Insufficient nvidia.com/gpu."),
        (9, "olmo: Complete"),
    ]


def test_prints_a_heartbeat_while_nothing_changes(watch: Watch) -> None:
    _, written = watch((70, olmo("Pending", LACKING)), (1, olmo("Complete")))
    assert written[1:] == [
        (30, "0:30 still waiting: olmo Pending"),
        (60, "1:00 still waiting: olmo Pending"),
        (70, "olmo: Complete"),
    ]


def test_reports_progress_of_pods_with_a_phase_change_or_after_half_a_minute(watch: Watch) -> None:
    steps = [cause(f"pod olmo-0 is {state}", passing=True) for state in ("not scheduled yet", "starting", "slow")]
    states = [(5, olmo("Pending", steps[0])), (10, olmo("Pending", steps[1])), (55, olmo("Pending", steps[2]))]
    _, written = watch(*states, (1, olmo("Complete")))
    assert written == [
        (0, "olmo: Pending\n  waits: pod olmo-0 is not scheduled yet"),
        (30, "olmo: Pending\n  waits: pod olmo-0 is slow"),
        (60, "1:00 still waiting: olmo Pending"),
        (70, "olmo: Complete"),
    ]


def test_reports_only_new_causes(watch: Watch) -> None:
    _, written = watch((1, olmo("Pending", TAKEN)), (1, olmo("Pending", TAKEN, LACKING)), (1, olmo("Complete")))
    assert written[1] == (1, "olmo: Pending\n  waits: the scheduler reports: 2 Insufficient nvidia.com/gpu.")


def test_reports_shared_causes_once_under_the_platform() -> None:
    written: list[str] = []
    policy = cause("ClusterPolicy cluster-policy is notReady", shared=True)
    looks = iter([[olmo("Pending", policy), olmo("Pending", policy, name="metaseq")], []])
    waiting.wait(lambda: next(looks), 600, written.append)
    assert written == ["olmo: Pending", "metaseq: Pending", f"platform: NotReady\n  waits: {policy.why}"]


def test_groups_workloads_by_cause() -> None:
    written: list[str] = []
    first = [olmo("Pending", TAKEN, LACKING), olmo("Pending", TAKEN, name="metaseq"), olmo("Running", name="nccl")]
    later = [*first[:2], olmo("Pending", TAKEN, name="nccl")]
    looks = iter([first, later, []])
    waiting.wait(lambda: next(looks), 600, written.append)
    assert written == [
        f"olmo: Pending\nmetaseq: Pending\n  waits: {TAKEN.why}",
        f"olmo: Pending\n  waits: {LACKING.why}",
        "nccl: Running",
        "nccl: Pending\n  waits: for the same reason as olmo",
    ]


def test_repeats_alternating_causes_after_five_minutes(watch: Watch) -> None:
    one, other = olmo("Pending", LACKING), olmo("Pending", TAKEN)  # such as ErrImagePull and ImagePullBackOff
    _, written = watch(*[(2, one), (2, other)] * 80, (1, olmo("Complete")))
    heartbeat = "still waiting: olmo Pending"
    assert [second for second, text in written if heartbeat not in text] == [0, 2, 300, 302, 320]
    assert (32, f"0:32 {heartbeat}") in written


def test_stops_waiting_if_an_image_is_missing_for_ten_seconds(watch: Watch) -> None:
    """`make up` may just have pushed the image, which a kubelet finds seconds later."""
    missing = olmo("Pending", MISSING)
    (workload,), written = watch((5, missing), (1, olmo()), (11, missing))
    assert not workload.settled
    assert written[-1][0] < 17


def test_lines_fit_a_terminal(watch: Watch) -> None:
    long = "a-workload-whose-name-takes-sixty-of-the-eighty-columns-alone"
    _, written = watch((31, olmo(name=long)), (1, olmo("Complete", name=long)))
    assert written[1][1].splitlines() == ["0:30 still waiting:", f"  {long} Pending"]
