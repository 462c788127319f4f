"""Waiting for workloads: each cause is told at once, again when it changes, and a sign of life in between."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from simulator.command import waiting
from simulator.command.diagnosed import Finding, Report
from simulator.command.jobs import Workload

Told = list[tuple[float, str]]
Watch = Callable[..., tuple[list[Workload], Told]]
OUTCOMES = {"Pending": "pending", "Running": "running", "Complete": "succeeded"}


def cause(why: str, **flags: bool) -> Finding:
    return Finding(why, f"  waits: {why}", **flags)


MISSING = cause("its registry does not have the image olmo:1", lasts=True)
LACKING = cause("the scheduler says: 2 Insufficient nvidia.com/gpu.")
TAKEN = cause("nvidia.com/gpu is taken by ai/metaseq on nodes a and b")


def olmo(phase: str = "Pending", *findings: Finding, name: str = "olmo") -> Workload:
    told = Report(name, phase, OUTCOMES[phase], f"{name}: {phase}", findings=findings)
    return Workload(name, "ai", "kubectl logs", "python -m diagnosis", ends=True, report=told)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Waits for workloads that are as given, each state for so many looks; what was told, and in which second."""

    def run(*states: tuple[int, Workload], timeout_s: float = 600) -> tuple[list[Workload], Told]:
        now, told = 0.0, Told()
        looks = (workload for times, workload in states for _ in range(times))

        seconds = itertools.count()

        def look() -> list[Workload]:
            nonlocal now
            now = next(seconds)
            return [next(looks)]

        monkeypatch.setattr(time, "monotonic", lambda: now)
        found = waiting.wait(look, timeout_s, lambda text: told.append((now, text)))
        assert not list(looks)
        return found, told

    return run


def test_a_cause_is_told_at_once_and_again_when_it_changes(watch: Watch) -> None:
    _, told = watch((5, olmo("Pending", LACKING)), (5, olmo("Pending", TAKEN)), (1, olmo("Complete")))
    assert told == [
        (0, "olmo: Pending\n  waits: the scheduler says: 2 Insufficient nvidia.com/gpu."),
        (5, "olmo: Pending\n  waits: nvidia.com/gpu is taken by ai/metaseq on nodes a and b"),
        (10, "olmo: Complete"),
    ]


def test_what_a_scheduler_counts_is_told_once_though_it_names_devices_in_turn(watch: Watch) -> None:
    counts = (
        "1 Insufficient nvidia.com/gpu, 1 Insufficient nvidia.com/mlnxnics.",
        "2 Insufficient nvidia.com/mlnxnics.",
    )
    others = [cause(f"the scheduler says: {count}") for count in counts]
    _, told = watch(
        (3, olmo("Pending", LACKING)), *((3, olmo("Pending", each)) for each in others), (1, olmo("Complete"))
    )
    assert told == [
        (0, "olmo: Pending\n  waits: the scheduler says: 2 Insufficient nvidia.com/gpu."),
        (9, "olmo: Complete"),
    ]


def test_while_nothing_changes_there_is_a_sign_of_life(watch: Watch) -> None:
    _, told = watch((70, olmo("Pending", LACKING)), (1, olmo("Complete")))
    assert told[1:] == [
        (30, "0:30 still waiting: olmo Pending"),
        (60, "1:00 still waiting: olmo Pending"),
        (70, "olmo: Complete"),
    ]


def test_of_pods_that_are_simply_under_way_not_each_step_is_told(watch: Watch) -> None:
    """The one at which the phase changes, and then after each half minute in which nothing was told."""
    steps = [cause(f"pod olmo-0 is {state}", passing=True) for state in ("not placed yet", "being started", "slow")]
    states = [(5, olmo("Pending", steps[0])), (10, olmo("Pending", steps[1])), (55, olmo("Pending", steps[2]))]
    _, told = watch(*states, (1, olmo("Complete")))
    assert told == [
        (0, "olmo: Pending\n  waits: pod olmo-0 is not placed yet"),
        (30, "olmo: Pending\n  waits: pod olmo-0 is slow"),
        (60, "1:00 still waiting: olmo Pending"),
        (70, "olmo: Complete"),
    ]


def test_only_what_is_new_is_told_of_a_workload_that_waits_on(watch: Watch) -> None:
    _, told = watch((1, olmo("Pending", TAKEN)), (1, olmo("Pending", TAKEN, LACKING)), (1, olmo("Complete")))
    assert told[1] == (1, "olmo: Pending\n  waits: the scheduler says: 2 Insufficient nvidia.com/gpu.")


def test_what_all_workloads_share_is_told_once_as_the_platforms() -> None:
    told: list[str] = []
    policy = cause("ClusterPolicy cluster-policy is notReady", shared=True)
    looks = iter([[olmo("Pending", policy), olmo("Pending", policy, name="metaseq")], []])
    waiting.wait(lambda: next(looks), 600, told.append)
    assert told == ["olmo: Pending", "metaseq: Pending", f"platform: NotReady\n  waits: {policy.why}"]


def test_a_cause_that_several_have_is_told_once_with_all_of_them() -> None:
    told: list[str] = []
    first = [olmo("Pending", TAKEN, LACKING), olmo("Pending", TAKEN, name="metaseq"), olmo("Running", name="nccl")]
    later = [*first[:2], olmo("Pending", TAKEN, name="nccl")]
    looks = iter([first, later, []])
    waiting.wait(lambda: next(looks), 600, told.append)
    assert told == [
        f"olmo: Pending\nmetaseq: Pending\n  waits: {TAKEN.why}",
        f"olmo: Pending\n  waits: {LACKING.why}",
        "nccl: Running",
        "nccl: Pending\n  waits: for the same as olmo",
    ]


def test_what_alternates_is_not_told_each_time_and_not_forgotten(watch: Watch) -> None:
    """As ErrImagePull and ImagePullBackOff do."""
    one, other = olmo("Pending", LACKING), olmo("Pending", TAKEN)
    _, told = watch(*[(2, one), (2, other)] * 80, (1, olmo("Complete")))
    waiting_on = "still waiting: olmo Pending"
    causes = [second for second, text in told if waiting_on not in text]
    assert causes == [0, 2, 300, 302, 320]
    assert (32, f"0:32 {waiting_on}") in told


def test_a_missing_image_ends_the_waiting_once_the_kubelet_has_tried_again(watch: Watch) -> None:
    """Not at its first sight: what `make up` has just pushed, a kubelet finds a few seconds later."""
    held_up = olmo("Pending", MISSING)
    (workload,), told = watch((5, held_up), (1, olmo()), (11, held_up))
    assert not workload.settled
    assert told[-1][0] < 17


def test_lines_fit_a_terminal(watch: Watch) -> None:
    long = "a-workload-whose-name-takes-sixty-of-the-eighty-columns-alone"
    _, told = watch((31, olmo(name=long)), (1, olmo("Complete", name=long)))
    assert told[1][1].splitlines() == ["0:30 still waiting:", f"  {long} Pending"]
