"""`python -m simulator fault`, `heal` and `reboot`."""

from __future__ import annotations

import argparse
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


@pytest.fixture
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    node = {"metadata": {"name": NODE, "labels": {"node.kubernetes.io/instance-type": H100}}}
    seen = snapshot.snapshot([node], [], {NODE: node_hardware(skus.sku(H100), NODE, ())}, {})
    snapshot.write(seen, tmp_path / "clusters" / "dev" / "world")


def _call(line: str) -> None:
    parser = argparse.ArgumentParser()
    faults.add_parsers(parser.add_subparsers())
    options = parser.parse_args(line.split())
    options.run(options)


@pytest.mark.usefixtures("_world")
def test_commands_break_list_and_heal(capsys: pytest.CaptureFixture[str]) -> None:
    slow = f"fault link --node {NODE} --device mlx5_3 --gbps 100"
    for line in (slow, "fault", "heal gpu", "heal link", "fault", "heal"):
        _call(line)
    broken = f"link {NODE} mlx5_3 100 Gb/s"
    assert capsys.readouterr().out.splitlines() == [
        f"broken: {broken}",
        broken,
        "no matching faults",
        f"healed: {broken}",
        "no faults",
        "no faults",
    ]


@pytest.mark.usefixtures("_world")
def test_a_reboot_shows_repaired_and_remaining_faults(capsys: pytest.CaptureFixture[str]) -> None:
    broken = ("xid --device 3 --code 48", "remap --device 4")
    for line in (*(f"fault {each} --node {NODE}" for each in broken), f"reboot {NODE}", "fault"):
        _call(line)
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"rebooted: {NODE}",
        f"healed: xid {NODE} 3 Xid 48",
        f"still broken: remap {NODE} 4",
        f"remap {NODE} 4",
    ]


@pytest.mark.usefixtures("_world")
def test_a_rail_fault_has_no_node(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("fault rail --device mlx5_3 --gbps 100", "heal rail --device mlx5_3"):
        _call(line)
    rail = "rail mlx5_3 100 Gb/s"
    assert capsys.readouterr().out.splitlines() == [f"broken: {rail}", f"healed: {rail}"]


def test_faults_of_azure_need_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    spot, roles = f"fault capacity --size {H100} --spot 0", "fault roles --seconds 60"
    for line in (f"fault capacity --size {H100}", spot, roles, "heal capacity", "fault"):
        _call(line)
    _call(f"fault price --size {H100} --usd 0.25")
    roles = "roles for 60 s"
    assert capsys.readouterr().out.splitlines() == [
        f"broken: capacity {H100}",
        f"broken: capacity 0 Spot {H100}",
        f"broken: {roles}",
        f"healed: capacity 0 Spot {H100}",
        roles,
        f"broken: price 0.25 USD {H100}",
    ]


@pytest.mark.usefixtures("_world")
@case_table(__file__, "refused")
def test_rejects_unknown_names_and_values(line: str, message: str) -> None:
    with pytest.raises(FaultError, match=message.replace("<node>", NODE)):
        _call(line.replace("<node>", NODE))
