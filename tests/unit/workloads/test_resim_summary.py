"""How a batch is summed up."""

from __future__ import annotations

from typing import Any

import pytest

from workloads.resim.summary import Cost, LastRun, cost, evicted, node_hours, summarised

NODE = "aks-spot1-11111111-vmss000000"
T4 = "Standard_NC4as_T4_v3"


def job(name: str, run: int, *, end: str = "", **status: Any) -> dict[str, Any]:
    conditions = [{"type": end, "status": "True", "reason": "FailedIndexes", "message": "Job has failed indexes"}]
    return {
        "metadata": {"name": name, "labels": {"ai-on-aks/run": str(run)}},
        "spec": {"completions": 10},
        "status": {**status, **({"conditions": conditions} if end else {})},
    }


def result(node: str = NODE, started: int = 0, ended: int = 3600, **more: Any) -> dict[str, Any]:
    return {"node": node, "started": started, "ended": ended, "attempts": 1, "outputBytes": 10, **more}


def test_the_last_run_says_how_a_batch_stands() -> None:
    found = LastRun.of(
        [
            job("night-2", 2, succeeded=4, active=3, failedIndexes="1,4-5"),
            job("night-1", 1, end="Failed", succeeded=1, failedIndexes="1-9"),
        ]
    )
    assert (found.name, found.indexes, found.succeeded, found.failed, found.active) == ("night-2", 10, 4, 3, 3)
    assert (found.state, found.ended) == ("Running", False)


def test_a_batch_that_has_failed_says_why() -> None:
    found = LastRun.of([job("night-1", 1, end="Failed", failedIndexes="7")])
    assert (found.state, found.reason) == ("Failed", "FailedIndexes: Job has failed indexes")
    assert (LastRun.of([]).state, LastRun.of([]).ended) == ("Stopped", True)


def test_scenarios_that_share_a_node_cost_its_hour_once() -> None:
    spans = [(0, 3600), (1800, 5400), (7200, 9000), (100, 200)]
    found = node_hours([result(started=start, ended=end) for start, end in spans] + [result("other", 0, 1800)])
    assert found == {NODE: 2.0, "other": 0.5}


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ({"spot1": (T4, True)}, Cost(1.052, at_most=True)),
        ({"spot1": (T4, False)}, Cost(1.052)),
        ({"spot1": ("Standard_ND96asr_v4_unlisted", False)}, Cost(None)),
        ({"other": (T4, False)}, Cost(None)),
    ],
)
def test_the_price_is_the_list_price_at_most_for_spot_and_unknown_without_one(
    pools: dict[str, tuple[str, bool]], expected: Cost
) -> None:
    assert cost({NODE: 2.0}, pools, "eastus") == expected


def test_evicted_are_those_that_said_so_and_those_that_could_not() -> None:
    attempts = {
        ("a", "told"): {"log.txt", "EVICTED"},
        ("b", "gone"): {"log.txt", "output/half"},
        ("c", "at-work"): {"log.txt"},
        ("d", "broken"): {"log.txt", "FAILED"},
    }
    assert evicted(attempts, {"at-work"}) == 2


def test_a_summary_for_readers_and_for_programs() -> None:
    results = [result(started=0, ended=50, inputBytes=4_000_000), result(started=50, ended=100, attempts=3)]
    told = summarised(
        "night",
        scenarios=3,
        succeeded=2,
        run=LastRun.of([job("night-1", 1, end="Failed", failedIndexes="2")]),
        evictions=2,
        retried_left=1,
        results=results,
        spent=Cost(0.5, at_most=True),
    )
    document = told.document()
    assert (document["left"], document["failed"], document["evicted"], document["retried"]) == (1, 1, 2, 2)
    assert (document["inputBytes"], document["outputBytes"], document["bytesPerSecond"]) == (4_000_000, 20, 40_000.2)
    assert (document["seconds"], document["scenarioSeconds"]) == (100, 100)
    text = "\n".join(told.lines())
    assert "100 s of scenarios, 1.0 at once on average" in text
    assert "3: 2 succeeded, 1 failed, 0 running" in text
    assert "4.0 MB read, 20 B written" in text
    assert "at most $0.50" in text
    assert "FailedIndexes" in text


def test_a_batch_of_which_nothing_is_done_yet() -> None:
    told = summarised(
        "n", scenarios=3, succeeded=0, run=LastRun(), evictions=0, retried_left=0, results=[], spent=Cost(None)
    )
    assert told.throughput == 0
    assert "unknown" in "\n".join(told.lines())
