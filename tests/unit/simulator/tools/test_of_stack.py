from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import operators
from config.schema.operators import key_of
from simulator.host import paths
from simulator.kubelet.programs import HostProcess
from simulator.operators import REAL
from simulator.tools.catalogue import load
from simulator.tools.of_stack import of_stack
from tests.support.case_files import case_table

CATALOGUE = load()
SIMULATORS = CATALOGUE.needed_for("simulator")
COMMANDS = {"simulator", "program", "check", "test-long", "entra"}


def own(stack: str) -> list[str]:
    return [tool.name for tool in of_stack(CATALOGUE, stack) if tool not in SIMULATORS]


@case_table(__file__, "tools", file="tools_of_stacks")
def test_enabled_operators_and_entra_logins_need_tools(
    config: dict[str, object], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    config = {"cluster": {"localAccounts": True}} | config
    keys = {f"ai-on-aks:{key}": value for key, value in config.items()}
    (tmp_path / "Pulumi.mine.yaml").write_text(yaml.safe_dump({"config": keys}))
    assert own("mine") == expected


@pytest.mark.parametrize("text", ["", "config:", "config: [", "text", "[]"])
def test_an_invalid_stack_file_needs_no_tools(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "Pulumi.mine.yaml").write_text(text)
    assert own("mine") == own("missing") == []


def test_tools_of_mlbatch_and_dev() -> None:
    assert set(own("mlbatch")) == {
        "kubelogin", "appwrapper-manager", "kuberay-operator", "kueue-manager", "scheduler-plugins-scheduler",
        "scheduler-plugins-controller", "training-operator-manager", "prometheus-operator", "prometheus",
        "kube-state-metrics",
    }  # fmt: skip
    assert own("dev") == []


def test_groups_are_commands_or_keys_of_operators() -> None:
    assert CATALOGUE.groups - COMMANDS <= {key_of(name) for name in operators.find()}


def test_tools_of_operators_pods_are_installed_before() -> None:
    programs = [program.program for operator in REAL for program in operator.programs]
    run = {tool for program in programs if isinstance(program, HostProcess) for tool in program.tools}
    assert run
    assert not [name for name in run if not CATALOGUE.by_name[name].needed_for]
