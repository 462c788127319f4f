"""The tools of a stack's operators follow from its stack file, and from what their pods run."""

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
NONE: list[str] = []
LOGIN = ["kubelogin"]
KUEUE = ["kueue-manager"]
SCHEDULER = ["scheduler-plugins-scheduler", "scheduler-plugins-controller"]


def own(stack: str) -> list[str]:
    """Those that a stack needs beside the simulator's."""
    return [tool.name for tool in of_stack(CATALOGUE, stack) if tool not in SIMULATORS]


@case_table(__file__, "tools", file="tools_of_stacks")
def test_they_are_those_of_operators_that_are_turned_on_and_of_clusters_without_local_accounts(
    config: dict[str, object], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    config = {"cluster": {"localAccounts": True}} | config
    keys = {f"ai-on-aks:{key}": value for key, value in config.items()}
    (tmp_path / "Pulumi.mine.yaml").write_text(yaml.safe_dump({"config": keys}))
    assert own("mine") == expected


@pytest.mark.parametrize("text", ["", "config:", "config: [", "text", "[]"])
def test_a_file_that_pulumi_refuses_needs_none(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "Pulumi.mine.yaml").write_text(text)
    assert own("mine") == own("missing") == NONE


def test_mlbatch_needs_those_of_five_operators_of_monitoring_and_of_logins() -> None:
    assert set(own("mlbatch")) == {
        *LOGIN, "appwrapper-manager", "kuberay-operator", *KUEUE, *SCHEDULER, "training-operator-manager",
        "prometheus-operator", "prometheus", "kube-state-metrics",
    }  # fmt: skip
    assert own("dev") == NONE


def test_groups_are_commands_or_keys_of_operators() -> None:
    assert CATALOGUE.groups - COMMANDS <= {key_of(name) for name in operators.find()}


def test_what_pods_of_an_operator_run_is_needed_for_it() -> None:
    """Otherwise a pod would be the first to need it, and Helm would count the minutes of its build."""
    programs = [program.program for operator in REAL for program in operator.programs]
    run = {tool for program in programs if isinstance(program, HostProcess) for tool in program.tools}
    assert run
    assert not [name for name in run if not CATALOGUE.by_name[name].needed_for]
