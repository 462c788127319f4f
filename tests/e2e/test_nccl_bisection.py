from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import pytest

from simulator.host.paths import ROOT
from tests.support.world import Stack, eventually, gpu_nodes, job_phase, log, names

pytestmark = [pytest.mark.simulator, pytest.mark.long]
NAME = "nccl-bisection"
NODES = 8
ENDED = ("Completed", "Failed", "Terminated", "Aborted")
GREEN, RED = "#2ca02c", "#d62728"


@dataclass
class Search:
    phase: str
    text: str
    result: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        lines = [line for line in self.text.splitlines() if line.startswith("JSON ")]
        assert lines, self.text
        self.result = json.loads(lines[-1].removeprefix("JSON "))

    @property
    def verdict(self) -> str:
        return self.text.splitlines()[-1]

    @property
    def found(self) -> list[tuple[str, str, str, str]]:
        return [(each["kind"], each["node"], each["rail"], each["state"]) for each in self.result["findings"]]


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Iterator[Stack]:
    made = new_stack("fabric", nodeCount=str(NODES), workloads=NAME)
    made.up()
    yield made
    made.world.simulator("heal")


@pytest.fixture(scope="module")
def nodes(stack: Stack) -> list[str]:
    return names(gpu_nodes(stack.kube))


def wait_for_end(stack: Stack) -> Search:
    def phase() -> str:
        now = job_phase(stack.kube, NAME)
        return now if now in ENDED else ""

    return Search(eventually(phase, "the search ends", 500, every=1), log(stack.kube, f"{NAME}-mpimaster-0"))


def test_a_healthy_fabric_passes_in_one_round(stack: Stack, nodes: list[str]) -> None:
    search = wait_for_end(stack)
    assert search.phase == "Completed", search.text
    assert search.result["nodes"] == nodes
    assert search.verdict == "VERDICT: PASS; busbw=367.71 GB/s floor=340 GB/s nodes=8 rounds=1 measurements=1"


def test_a_slow_link_is_found_and_drawn(stack: Stack, nodes: list[str]) -> None:
    stack.world.simulator("fault", "link", "--node", nodes[5], "--device", "mlx5_2", "--gbps", "100")
    stack.up("--replace", f"**:Job::{NAME}")
    search = wait_for_end(stack)
    assert search.phase == "Terminated"
    assert search.found == [("link", nodes[5], "mlx5_2", "bad")]
    assert search.result["rounds"] == 6
    assert search.verdict.startswith(f"VERDICT: FAIL bad: link mlx5_2 of {nodes[5]}; rest=367.71 GB/s")
    colours = squares(search.text)
    assert {place for place, colour in colours.items() if colour == RED} == {f"{nodes[5]} mlx5_2"}
    assert len(colours) == NODES * 8


def squares(text: str) -> dict[str, str]:
    command = [sys.executable, "-m", "workloads.nccl_bisection"]
    drawn = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=True)
    space = "{http://www.w3.org/2000/svg}"
    rects = ElementTree.fromstring(drawn.stdout).iter(f"{space}rect")  # noqa: S314  our own text
    titles = {rect.findtext(f"{space}title", ""): rect.get("fill", "") for rect in rects}
    assert GREEN in titles.values()
    return {title.partition(":")[0]: colour for title, colour in titles.items() if title}
