from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.batches import LIGHT, add_template, output_sizes, resim_json
from tests.e2e.policies import offered_gpus
from tests.support.world import Stack, eventually

pytestmark = [pytest.mark.simulator, pytest.mark.long, pytest.mark.timeout(2700)]
POOLS: dict[str, Any] = {"spot": {"vmSku": "Standard_NC64as_T4_v3", "spot": True, "autoscale": {"min": 5, "max": 5}}}
SLOTS = 5 * 4
MANY, FEW = 2000, 100
STEADY = 'sleep 6; echo "$SCENARIO" >"$OUTPUT/a"'
"""A scenario long enough that twenty start before one ends, on any CPUs."""
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
    eventually(lambda: sum(offered_gpus(made)) == SLOTS, "all nodes offer their GPUs", 120)
    add_template(made, "light", LIGHT)
    add_template(made, "steady", STEADY)
    return made


def run(stack: Stack, folder: Path, name: str, count: int, template: str) -> dict[str, Any]:
    listed = folder / f"{name}.txt"
    listed.write_text("".join(f"{name}-{number:04d}\n" for number in range(count)))
    options = ("--scenarios", str(listed), "--name", name, "--template", template)
    summary: dict[str, Any] = resim_json(stack, "submit", *options, "--wait")
    assert (summary["state"], summary["succeeded"], summary["failed"]) == ("Complete", count, 0), summary
    return summary


@pytest.mark.alone
def test_two_thousand_scenarios_have_no_more_overhead_than_a_hundred(stack: Stack, tmp_path: Path) -> None:
    few, many = (overhead(stack, tmp_path, f"of-{count}", count) for count in (FEW, MANY))
    assert many <= few * APART, (few, many)


def overhead(stack: Stack, folder: Path, name: str, count: int) -> float:
    """Returns the ratio of a batch's duration to that of its work on all slots."""
    summary = run(stack, folder, name, count, "steady")
    return float(summary["seconds"] * SLOTS / summary["scenarioSeconds"])


def test_each_of_two_thousand_scenarios_is_finished_once_despite_evictions(stack: Stack, tmp_path: Path) -> None:
    stack.world.simulator("evict", "--rate", str(EVICTED_AN_HOUR), "--seed", str(SEED))
    try:
        summary = run(stack, tmp_path, "evicted", MANY, "light")
    finally:
        stack.world.simulator("evict", "--rate", "0")
    assert summary["evicted"] > 0
    assert summary["retried"] > 0
    assert summary["cost"]["atMost"]
    assert summary["nodeHours"] > 0
    found = output_sizes(stack, "evicted")
    outputs = Counter(name.split("/")[1] for name in found if name.startswith("results/") and "/output/" in name)
    assert outputs == {f"evicted-{number:04d}": 2 for number in range(MANY)}, "all outputs once"
    assert not [name for name in found if name.startswith("attempts/") and "/output/" in name]
