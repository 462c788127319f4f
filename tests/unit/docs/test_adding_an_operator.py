from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simulator.host.paths import ROOT
from tests.support.checkout import Checkout
from tests.support.pages import files

PAGE = ROOT / "docs" / "adding-an-operator.md"
DECLARE = """
import json, sys
from config.problems.errors import SettingsError
import pulumi
from tests.support.mocks import program
def declared(keys):
    try:
        found = program(keys)
    except pulumi.RunError as error:
        return str(error)
    return [r.inputs for r in found.registered if r.name == "cert-manager" and r.custom]
print(json.dumps([declared(keys) for keys in json.loads(sys.argv[1])]))
"""
VM_SIZE = {"vmSku": "Standard_ND96isr_H100_v5"}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Checkout.copy(tmp_path_factory.mktemp("operator")).folder
    for name, text in files(PAGE).items():
        if name.startswith("operators/"):
            (folder / name).parent.mkdir()
            (folder / name).write_text(text)
    keys = files(PAGE)["config/data/charts/cert-manager.keys"].partition("\n")[2]
    (folder / "config/data/charts/cert-manager.keys").write_text(f"# cert-manager v1.19.1: its keys\n{keys}")
    pins = folder / "config" / "data" / "versions.yaml"
    pin = files(PAGE)["cert-manager.pin"].partition("\n")[2]
    pins.write_text(pins.read_text().replace("\ncharts:\n", f"\ncharts:\n{pin}"))
    return folder


def declared(copy: Path, *stacks: dict[str, Any]) -> list[Any]:
    command = [sys.executable, "-c", DECLARE, json.dumps([VM_SIZE | keys for keys in stacks])]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def of_operator(**keys: Any) -> dict[str, Any]:
    return {"operators": {"certManager": keys}}


def test_the_operator_can_be_installed_disabled_and_validated(copy: Path) -> None:
    (release,), off, refused, without_chart = declared(
        copy,
        of_operator(values={"crds": {"enabled": False}}),
        of_operator(enabled=False),
        of_operator(enabld=False, values={"crd": {}}),
        {"charts": {"source": "simulator/charts"}},
    )
    assert (release["version"], release["namespace"]) == ("v1.19.1", "cert-manager")
    assert release["values"]["crds"] == {"enabled": False}
    assert release["values"]["webhook"]["nodeSelector"]
    assert off == []
    assert "operators.certManager.enabld is an unknown key; similar: enabled" in refused
    assert "operators.certManager.values.crd is a key that chart cert-manager v1.19.1 does not have" in refused
    assert "a folder without cert-manager/Chart.yaml" in without_chart
