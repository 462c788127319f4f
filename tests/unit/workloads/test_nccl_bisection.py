from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from bisection import BAD, LINK, NODE, POOL, RAIL, UNKNOWN

from simulator.host.paths import ROOT
from tests.unit.workloads.fabric_model import NOTHING, RAILS, SLOW, Fabric, name, node, short

SIZES = (8, 64, 1000)


def most_rounds(nodes: int) -> int:
    """Returns the number for one fault: all nodes, rails, pairs, halves of halves, confirmation, all good nodes."""
    return 5 + math.ceil(math.log2(nodes))


@pytest.mark.parametrize("count", [2, 3, *SIZES])
def test_a_healthy_fabric_takes_one_round(count: int) -> None:
    report = Fabric(count).search()
    assert (report.rounds, report.measurements, report.findings, report.chance) == (1, 1, [], [])
    assert report.rest is not None
    assert report.rest.busbw == 46


TWO_RAILS = [(RAIL, "", 2, BAD), (RAIL, "", 5, BAD)]
ALL_KINDS = [*TWO_RAILS, (LINK, name(1), 0, BAD), (NODE, name(4), None, BAD), (NODE, name(6), None, BAD)]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(
    ("faults", "found", "rounds"),
    [
        ({"slow": [(1, 3)]}, [(LINK, name(1), 3, BAD)], most_rounds),
        ({"slow": node(2)}, [(NODE, name(2), None, BAD)], most_rounds),
        # One more: the node alone.
        ({"slow_inside": [2]}, [(NODE, name(2), None, BAD)], lambda count: most_rounds(count) + 1),
        ({"slow_rails": [2, 5]}, TWO_RAILS, lambda count: 6),
        # Twice: links, and nodes that are slow with all devices.
        (
            {"slow": [(1, 0), *node(4)], "slow_rails": [2, 5], "slow_inside": [6]},
            ALL_KINDS,
            lambda count: 2 * most_rounds(count),
        ),
    ],
    ids=["a link", "all links of a node", "a node with good links", "two rails", "all together"],
)
def test_finds_faults_in_few_rounds(
    count: int, faults: dict[str, Any], found: list[Any], rounds: Callable[[int], int]
) -> None:
    report = Fabric(count, **faults).search()
    assert short(report.findings) == found
    assert report.rounds <= rounds(count)
    assert report.rest is not None
    assert report.rest.state == "good"
    if "slow_inside" in faults and len(faults) == 1:
        assert "NVLink alone reaches 11 GB/s of 45: bad" in report.findings[0].outcome.why


DOCUMENTED: dict[str, dict[str, Any]] = {
    "nothing slow": {},
    "a link": {"slow": [(1, 3)]},
    "a node, all of its links slow": {"slow": node(2)},
    "a node, all of its links good": {"slow_inside": [2]},
    "two rails": {"slow_rails": [2, 5]},
    "all of these at once": {"slow": [(1, 0), *node(4)], "slow_rails": [2, 5], "slow_inside": [6]},
}


def test_the_document_has_these_rounds_and_runs() -> None:
    page = (ROOT / "docs" / "nccl-bisection.md").read_text(encoding="utf-8")
    for what, faults in DOCUMENTED.items():
        reports = [Fabric(count, **faults).search() for count in SIZES]
        cells = [f"{each.rounds} rounds, {each.measurements} runs" for each in reports]
        assert f"| {what} | {' | '.join(cells)} |".replace("1 rounds, 1 runs", "1 round, 1 run") in page


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("seed", range(12))
def test_finds_random_faults_and_nothing_else(count: int, seed: int) -> None:
    chosen = random.Random(f"{count} {seed}")  # noqa: S311  the same faults each time
    links = {(chosen.randrange(count), chosen.randrange(RAILS)) for _ in range(chosen.randint(0, count // 2 - 1) % 20)}
    rails = set(chosen.sample(range(RAILS), chosen.randint(0, 3)))
    left = sorted(set(range(count)) - {number for number, _ in links})
    inside = chosen.sample(left, min(1, len(left) - 4))
    report = Fabric(count, slow=links, slow_rails=rails, slow_inside=inside).search()
    found = {(each.kind, each.node, each.rail) for each in report.findings if each.outcome.state == BAD}
    expected = {(LINK, name(number), rail) for number, rail in links if rail not in rails}
    assert found == {(RAIL, "", rail) for rail in rails} | expected | {(NODE, name(number), None) for number in inside}
    faults, height = len(links) + len(rails) + len(inside), math.ceil(math.log2(count))
    assert report.rounds <= (faults + 1) * (height + 5)
    assert report.measurements <= 1 + RAILS + 30 * (faults + 1) + 2 * faults * height


@pytest.mark.parametrize("count", SIZES)
def test_missing_results_are_unknown_and_hide_no_faults(count: int) -> None:
    report = Fabric(count, dead=[3], dead_links=[(5, 1)], slow=[(6, 7)], slow_rails=[4]).search()
    assert short(report.findings) == [
        (RAIL, "", 4, BAD),
        (NODE, name(3), None, UNKNOWN),
        (LINK, name(5), 1, UNKNOWN),
        (LINK, name(6), 7, BAD),
    ]


def test_a_pool_without_any_result_is_unknown() -> None:
    report = Fabric(8, dead=range(8)).search()
    assert short(report.findings) == [(POOL, "", None, UNKNOWN)]


FAULTS = (Fabric(8), Fabric(8, slow=[(1, 3)]), Fabric(8, slow=node(5)), Fabric(8, slow_rails=[2, 5]))


@pytest.mark.parametrize("fabric", FAULTS, ids=("healthy", "link", "node", "rails"))
def test_one_slow_run_by_chance_changes_no_finding(fabric: Fabric) -> None:
    expected = Fabric(8, slow=fabric.slow, slow_rails=fabric.slow_rails).search()
    for number in range(expected.measurements):
        report = Fabric(8, slow=fabric.slow, slow_rails=fabric.slow_rails, instead={number: SLOW}).search()
        assert short(report.findings) == short(expected.findings), number
    first = Fabric(8, instead={0: SLOW}).search()
    assert short(first.chance) == [(POOL, "", None, BAD)]


def test_each_suspect_is_measured_with_two_different_nodes() -> None:
    fabric = Fabric(8, slow=[(1, 3)])
    fabric.search()
    *_, first, second, _ = [group.nodes for groups in fabric.rounds for group in groups if name(1) in group.nodes] + [
        ()
    ]
    assert len(first) == len(second) == 2
    assert set(first) & set(second) == {name(1)}


@pytest.mark.parametrize("number", [13, 15], ids=["first look", "second look"])
def test_a_link_that_is_slow_once_and_then_without_result_is_unknown(number: int) -> None:
    """The measurements are of one of two suspects, after the pool, eight rails and four pairs."""
    report = Fabric(8, slow=[(1, 3)], instead={number: NOTHING}).search()
    assert short(report.findings) == [(LINK, name(1), 3, UNKNOWN)]


def test_a_rail_that_is_slow_once_and_then_without_result_is_unknown() -> None:
    report = Fabric(2, slow_rails=[3], instead={10: NOTHING, 11: NOTHING}).search()
    assert short(report.findings) == [(RAIL, "", 3, UNKNOWN)]


def test_a_pool_that_is_only_slow_together_is_bad() -> None:
    report = Fabric(8, together=6).search()
    assert short(report.findings) == [(POOL, "", None, BAD)]
    assert "no single node, link or rail is bad" in report.findings[0].outcome.why


@pytest.mark.parametrize("bad", [1, 2, 3])
def test_slow_links_of_few_nodes_are_not_a_bad_rail(bad: int) -> None:
    report = Fabric(8, slow=[(number, 3) for number in range(bad)]).search()
    assert short(report.findings) == [(LINK, name(number), 3, BAD) for number in range(bad)]


def test_two_nodes_are_too_few_to_separate_a_link_from_its_rail() -> None:
    assert short(Fabric(3, slow=[(1, 3)]).search().findings) == [(LINK, name(1), 3, BAD)]
    assert short(Fabric(2, slow=[(1, 3)]).search().findings) == [(RAIL, "", 3, BAD)]


def test_finds_all_faults_with_few_good_nodes() -> None:
    """Each suspect's measurement needs one of the two good nodes."""
    report = Fabric(8, slow=[(number, 0) for number in (2, 3, 4)], dead_links=[(5, 0), (6, 0)]).search()
    assert {state for *_, state in short(report.findings)} == {BAD, UNKNOWN}
    assert len(report.findings) == 5


def test_reports_links_that_are_down_without_a_measurement() -> None:
    report = Fabric(8, down={(name(2), 3): "port is DOWN"}, slow=[(2, 4), (5, 3)]).search()
    assert short(report.findings) == [
        (LINK, name(2), 3, BAD),
        (LINK, name(2), 4, BAD),
        (LINK, name(5), 3, BAD),
    ]
    assert report.findings[0].outcome.why == "port is DOWN"


def test_a_node_with_all_links_down_is_bad() -> None:
    report = Fabric(8, down={(name(2), rail): "port is DOWN" for rail in range(RAILS)}).search()
    assert short(report.findings) == [(NODE, name(2), None, BAD)]
