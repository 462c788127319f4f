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


def test_evicts_a_node(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(node, "--without-drain")
    assert EvictionStore().all() == [Eviction(node, drains=False)]
    run()
    assert capsys.readouterr().out.splitlines() == [f"evicting {node} in 30 s", node]


def test_sets_shows_and_ends_a_rate(capsys: pytest.CaptureFixture[str]) -> None:
    run("--rate", "12", "--seed", "7")
    assert EvictionStore().rate() == Rate(12, 7)
    run()
    run("--rate", "0")
    run()
    assert capsys.readouterr().out.splitlines() == [
        "evicting 12 Spot nodes per hour, seed 7",
        "12 per hour, seed 7",
        "evictions per hour have ended",
        "no evictions",
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["aks-gpu-1-vmss000004"], f"aks-gpu-1-vmss000004 is not a Spot node; the Spot nodes are: {NODE}"),
        (["--rate", "-1"], "--rate -1: must be a number of nodes per hour, or 0"),
        (["--rate", "inf"], "--rate inf: must be"),
        (["--rate", "nan"], "--rate nan: must be"),
    ],
)
def test_rejects_other_nodes_and_rates(arguments: list[str], error: str) -> None:
    with pytest.raises(FaultError, match=error):
        run(*arguments)
    assert (EvictionStore().all(), EvictionStore().rate()) == ([], None)
