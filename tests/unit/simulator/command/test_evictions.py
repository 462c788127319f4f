"""`python -m simulator evict`: whom it takes, and what it says to what cannot be."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from simulator.azure.ids import parse_id
from simulator.azure.store import Record, Store
from simulator.command import evictions
from simulator.world.evictions import Eviction, EvictionStore, Rate
from simulator.world.faults import FaultError
from tests.support.arm import pool_path

NODE = "aks-cheap-07135884-vmss000004"


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a simulator that has one Spot pool of one node, and one that is none."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    store = Store(tmp_path / "azure")
    for name, priority in (("cheap", "Spot"), ("gpu", "Regular")):
        properties = {"count": 1, "scaleSetPriority": priority}
        store.put(Record(parse_id(pool_path(name)), {"properties": properties}, facts={"instances": [4]}))
    return NODE


def run(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    evictions.add_parser(parser.add_subparsers())
    options = parser.parse_args(["evict", *arguments])
    options.run(options)


def test_a_node_is_evicted(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(node, "--without-drain")
    assert EvictionStore().all() == [Eviction(node, drains=False)]
    run()
    assert capsys.readouterr().out.splitlines() == [f"evicted: {node}, in 30 s", node]


def test_a_rate_is_set_told_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    run("--rate", "12", "--seed", "7")
    assert EvictionStore().rate() == Rate(12, 7)
    run()
    run("--rate", "0")
    run()
    assert capsys.readouterr().out.splitlines() == [
        "evicted: 12 Spot nodes an hour, seed 7",
        "12 an hour, seed 7",
        "no more evictions at a rate",
        "nothing is being evicted",
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["aks-gpu-1-vmss000004"], f"no Spot node is called aks-gpu-1-vmss000004; there are: {NODE}"),
        (["--rate", "-1"], "--rate -1: must be 0, which ends it, or a number of nodes an hour"),
        (["--rate", "inf"], "--rate inf: must be 0, which ends it, or a number of nodes an hour"),
        (["--rate", "nan"], "--rate nan: must be 0, which ends it, or a number of nodes an hour"),
    ],
)
def test_what_cannot_be_evicted(arguments: list[str], error: str) -> None:
    with pytest.raises(FaultError, match=error):
        run(*arguments)
    assert (EvictionStore().all(), EvictionStore().rate()) == ([], None)
