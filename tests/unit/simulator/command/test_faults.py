from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from config.data import skus
from simulator.command import faults
from simulator.world import snapshot
from simulator.world.faults import FaultError
from simulator.world.hardware import node_hardware
from tests.support.case_files import case_table
from tests.support.sizes import H100

NODE = "aks-gpu-22222222-vmss000000"
Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))

    def commands(*lines: str) -> list[str]:
        parser = argparse.ArgumentParser()
        faults.add_parsers(parser.add_subparsers())
        for line in lines:
            options = parser.parse_args(line.split())
            options.run(options)
        return capsys.readouterr().out.splitlines()

    return commands


@pytest.fixture
def _node(run: Run, tmp_path: Path) -> None:
    node = {"metadata": {"name": NODE, "labels": {"node.kubernetes.io/instance-type": H100}}}
    seen = snapshot.snapshot([node], [], {NODE: node_hardware(skus.sku(H100), NODE, ())}, {})
    snapshot.write(seen, tmp_path / "clusters" / "dev" / "world")


@pytest.mark.usefixtures("_node")
def test_commands_break_list_and_heal(run: Run) -> None:
    broken = f"link {NODE} mlx5_3 100 Gb/s"
    slow = f"fault link --node {NODE} --device mlx5_3 --gbps 100"
    assert run(slow, "fault", "heal gpu") == [f"broken: {broken}", broken, "no matching faults"]
    assert run("heal link", "fault", "heal") == [f"healed: {broken}", "no faults", "no faults"]


@pytest.mark.usefixtures("_node")
def test_a_reboot_shows_repaired_and_remaining_faults(run: Run) -> None:
    run(f"fault xid --device 3 --code 48 --node {NODE}", f"fault remap --device 4 --node {NODE}")
    assert run(f"reboot {NODE}", "fault") == [
        f"rebooted: {NODE}",
        f"healed: xid {NODE} 3 Xid 48",
        f"still broken: remap {NODE} 4",
        f"remap {NODE} 4",
    ]


@pytest.mark.usefixtures("_node")
def test_a_rail_fault_has_no_node(run: Run) -> None:
    rail = "rail mlx5_3 100 Gb/s"
    lines = run("fault rail --device mlx5_3 --gbps 100", "heal rail --device mlx5_3")
    assert lines == [f"broken: {rail}", f"healed: {rail}"]


def test_faults_of_azure_need_no_node(run: Run) -> None:
    capacity, roles = f"fault capacity --size {H100}", "roles for 60 s"
    assert run(capacity, f"{capacity} --spot 0", "fault roles --seconds 60") == [
        f"broken: capacity {H100}",
        f"broken: capacity 0 Spot {H100}",
        f"broken: {roles}",
    ]
    assert run("heal capacity", "fault") == [f"healed: capacity 0 Spot {H100}", roles]
    assert run(f"fault price --size {H100} --usd 0.25") == [f"broken: price 0.25 USD {H100}"]


@pytest.mark.usefixtures("_node")
@case_table(__file__, "refused")
def test_rejects_unknown_names_and_values(run: Run, line: str, message: str) -> None:
    with pytest.raises(FaultError, match=message.replace("<node>", NODE)):
        run(line.replace("<node>", NODE))
