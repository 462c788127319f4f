"""Thousands of scenarios on five Spot nodes: evictions of nodes lose none of them, and a batch's size costs nothing.

One `up` for each; the measure is taken while nothing else runs here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.batches import LIGHT, add_template, kept, told
from tests.support.world import Stack, eventually, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.long, pytest.mark.timeout(2700)]
POOLS: dict[str, Any] = {
    "spot": {
        "vmSku": "Standard_NC64as_T4_v3",
        "spot": True,
        "autoscale": {"min": 5, "max": 5},
    }
}
SLOTS = 5 * 4
MANY, FEW = 2000, 100
STEADY = 'sleep 6; echo "$SCENARIO" >"$OUTPUT/a"'
"""A scenario that lasts as long as twenty take to begin here: processors have time to spare, however many there are."""
EVICTED_AN_HOUR, SEED = 60, 17
APART = 1.1


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    storage = {
        "accounts": {
            "input": {"protect": False, "containers": {"input": {}}},
            "output": {"protect": False, "containers": {"output": {"permissions": "racwdlmp"}}},
        }
    }
    options = {"resim": {"count": 1, "gpuSeconds": 1}}
    made = new_stack(
        "fleet", vmSku=None, nodeCount=None, pools=POOLS, workloads="resim", workloadOptions=options, storage=storage
    )
    made.up()
    eventually(lambda: offered(made) == SLOTS, "all nodes offer their GPUs", 120)
    add_template(made, "light", LIGHT)
    add_template(made, "steady", STEADY)
    return made


def offered(stack: Stack) -> int:
    return sum(int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0)) for node in gpu_nodes(stack.kube))


def run(stack: Stack, folder: Path, name: str, count: int, template: str) -> dict[str, Any]:
    """The summary of so many scenarios, once they have ended."""
    listed = folder / f"{name}.txt"
    listed.write_text("".join(f"{name}-{number:04d}\n" for number in range(count)))
    told_of: dict[str, Any] = told(
        stack, "submit", "--scenarios", str(listed), "--name", name, "--template", template, "--wait"
    )
    assert (told_of["state"], told_of["succeeded"], told_of["failed"]) == ("Complete", count, 0), told_of
    return told_of


@pytest.mark.alone
def test_two_thousand_take_no_longer_for_their_work_than_a_hundred(stack: Stack, tmp_path: Path) -> None:
    few, many = (measured(stack, tmp_path, f"of-{count}", count) for count in (FEW, MANY))
    assert 1 / APART <= many / few <= APART, (few, many)


def measured(stack: Stack, folder: Path, name: str, count: int) -> float:
    """How much longer a batch took than its work, shared among all slots."""
    told_of = run(stack, folder, name, count, "steady")
    return float(told_of["seconds"] * SLOTS / told_of["scenarioSeconds"])


def test_two_thousand_scenarios_while_nodes_are_evicted_each_finished_once(stack: Stack, tmp_path: Path) -> None:
    stack.world.simulator("evict", "--rate", str(EVICTED_AN_HOUR), "--seed", str(SEED))
    try:
        summary = run(stack, tmp_path, "evicted", MANY, "light")
    finally:
        stack.world.simulator("evict", "--rate", "0")
    assert summary["evicted"] > 0
    assert summary["retried"] > 0
    assert summary["cost"]["atMost"]
    assert summary["nodeHours"] > 0
    found = kept(stack, "evicted")
    outputs = Counter(name.split("/")[1] for name in found if name.startswith("results/") and "/output/" in name)
    assert outputs == {f"evicted-{number:04d}": 2 for number in range(MANY)}, "all of each, and none of it twice"
    assert not [name for name in found if name.startswith("attempts/") and "/output/" in name]
