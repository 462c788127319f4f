from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.case_files import case_table
from tests.support.sizes import T4
from workloads.resim.batch import (
    MOST_SCENARIOS,
    Layout,
    Refused,
    checked_count,
    checked_name,
    default_name,
    digest,
    numbered,
    parse,
)
from workloads.resim.summary import Cost, LastRun, cost, evicted, node_hours, summarised


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_reads_one_scenario_per_line(encoding: str, end: str) -> None:
    lines = ["# of November", "night-2", "", "  night-1.v2 \t", "   # X_8", "X_9"]
    assert parse(end.join(lines).encode(encoding), "list.txt") == ["night-2", "night-1.v2", "X_9"]


@pytest.mark.parametrize(
    ("content", "what", "fix"),
    [
        (b"", "list.txt has no scenarios", "--njobs 20"),
        (b"\n \n", "list.txt has no scenarios", "--njobs 20"),
        (b"a\nb\xff\n", "list.txt:2 is not UTF-8", "iconv"),
        (b"\x1f\x8b\x08\0\0\0", "list.txt:1 is not UTF-8", "file list.txt"),
        (b"# none yet\n", "list.txt has no scenarios", "--njobs 20"),
        ("night\u20281\n".encode(), r"line 1 is 'night\u20281'", "sed -i"),
        ("night-1\u200b\n".encode(), r"line 1 is 'night-1\u200b'", "sed -i"),
        (b"night-1 # later\n", "line 1 is 'night-1 # later'", "sed -i"),
        (b'["night-1"]\n', "line 1 is", "sed -i"),
        (b"a/b\n..\nok\n", "line 1 is 'a/b'; line 2 is '..'", "sed -i"),
        (b".hidden\n", "line 1 is '.hidden'", "sed -i"),
        (b"ends.\n", "line 1 is 'ends.'", "sed -i"),
        (b"two words\n", "line 1 is 'two words'", "sed -i"),
        (b"-rf\n", "line 1 is '-rf'", "sed -i"),
        (b"a\nb\na\n", "has 1 duplicate names: a", "sort -u"),
        (b"x\n" * 1_000_000, "list.txt has 1,000,000 scenarios", f"split -l {MOST_SCENARIOS} list.txt"),
        ("\n".join(f"bad name {n}" for n in range(9)).encode(), "and 6 more", "sed -i"),
        (("n" * 101).encode(), "invalid names", "sed -i"),
    ],
)
def test_rejects_invalid_lists_with_a_fix(content: bytes, what: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        parse(content, "list.txt")
    assert what in refused.value.what
    assert fix in refused.value.fix
    assert refused.value.allowed
    if refused.value.fix.startswith("sed"):
        listed = tmp_path / "list.txt"
        listed.write_bytes(content)
        subprocess.run(["/bin/sh", "-c", refused.value.fix], cwd=tmp_path, check=True)
        assert parse(listed.read_bytes(), "list.txt"), "the suggested command fixes it"


@pytest.mark.parametrize(("count", "what"), [(0, "is 0"), (-1, "is -1"), (1_000_000, "--njobs is 1,000,000")])
def test_rejects_invalid_numbers_of_scenarios(count: int, what: str) -> None:
    with pytest.raises(Refused, match=what):
        checked_count(count)


def test_scenarios_and_their_order_identify_a_batch() -> None:
    assert digest(["a", "b"]) == digest(iter(["a", "b"]))
    assert len({digest(["a", "b"]), digest(["b", "a"]), digest(["ab"]), digest(["a"])}) == 4
    assert default_name(numbered(20)) == default_name(numbered(20)) != default_name(numbered(21))
    assert checked_name(default_name(numbered(20)))


@case_table(__file__, "names")
def test_rejects_invalid_names_with_a_fix(name: str, fix: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_name(name)
    assert refused.value.fix == fix


def test_each_namespace_has_its_own_batches() -> None:
    mine, theirs = Layout("ai", "night"), Layout("team", "night")
    assert (mine.identity, mine.run(2)) == ("ai/night/batch.json", "ai/night/runs/2.txt")
    assert not theirs.root.startswith(mine.root)


NODE = "aks-spot1-11111111-vmss000000"


def job(name: str, run: int, *, end: str = "", **status: Any) -> dict[str, Any]:
    conditions = [{"type": end, "status": "True", "reason": "FailedIndexes", "message": "Job has failed indexes"}]
    return {
        "metadata": {"name": name, "labels": {"ai-on-aks/run": str(run)}},
        "spec": {"completions": 10},
        "status": {**status, **({"conditions": conditions} if end else {})},
    }


def result(node: str = NODE, started: int = 0, ended: int = 3600, **more: Any) -> dict[str, Any]:
    return {"node": node, "started": started, "ended": ended, "attempts": 1, "outputBytes": 10, **more}


def test_reads_the_state_of_the_last_run() -> None:
    found = LastRun.of(
        [
            job("night-2", 2, succeeded=4, active=3, failedIndexes="1,4-5"),
            job("night-1", 1, end="Failed", succeeded=1, failedIndexes="1-9"),
        ]
    )
    assert (found.name, found.indexes, found.succeeded, found.failed, found.active) == ("night-2", 10, 4, 3, 3)
    assert (found.state, found.ended) == ("Running", False)


def test_reads_the_reason_of_a_failure() -> None:
    found = LastRun.of([job("night-1", 1, end="Failed", failedIndexes="7")])
    assert (found.state, found.reason) == ("Failed", "FailedIndexes: Job has failed indexes")
    assert (LastRun.of([]).state, LastRun.of([]).ended) == ("Stopped", True)


def test_counts_shared_node_hours_once() -> None:
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
def test_the_cost_is_a_maximum_for_spot_and_unknown_without_a_price(
    pools: dict[str, tuple[str, bool]], expected: Cost
) -> None:
    assert cost({NODE: 2.0}, pools, "eastus") == expected


def test_counts_marked_and_lost_attempts_as_evicted() -> None:
    attempts = {
        ("a", "evicted"): {"log.txt", "EVICTED"},
        ("b", "lost"): {"log.txt", "output/half"},
        ("c", "running"): {"log.txt"},
        ("d", "failed"): {"log.txt", "FAILED"},
    }
    assert evicted(attempts, {"running"}) == 2


def test_summarises_as_text_and_as_a_document() -> None:
    results = [result(started=0, ended=50, inputBytes=4_000_000), result(started=50, ended=100, attempts=3)]
    summary = summarised(
        "night",
        scenarios=3,
        succeeded=2,
        run=LastRun.of([job("night-1", 1, end="Failed", failedIndexes="2")]),
        evictions=2,
        retried_left=1,
        results=results,
        spent=Cost(0.5, at_most=True),
    )
    document = summary.document()
    assert (document["left"], document["failed"], document["evicted"], document["retried"]) == (1, 1, 2, 2)
    assert (document["inputBytes"], document["outputBytes"], document["bytesPerSecond"]) == (4_000_000, 20, 40_000.2)
    assert (document["seconds"], document["scenarioSeconds"]) == (100, 100)
    text = "\n".join(summary.lines())
    assert "100 s of scenarios, 1.0 in parallel on average" in text
    assert "3: 2 succeeded, 1 failed, 0 running" in text
    assert "4.0 MB read, 20 B written" in text
    assert "at most $0.50" in text
    assert "FailedIndexes" in text


def test_summarises_a_batch_without_results() -> None:
    summary = summarised(
        "n", scenarios=3, succeeded=0, run=LastRun(), evictions=0, retried_left=0, results=[], spent=Cost(None)
    )
    assert summary.throughput == 0
    assert "unknown" in "\n".join(summary.lines())
