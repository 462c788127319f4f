"""The operator that docs/adding-an-operator.md has to copy, added to a copy of the program: found and installed."""

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
try:
    found = program(json.loads(sys.argv[1]))
except pulumi.RunError as error:
    print(json.dumps(str(error)))
else:
    print(json.dumps([r.inputs for r in found.registered if r.name == "cert-manager" and r.custom]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the page's files, and its pin."""
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


def declared(copy: Path, **operators: Any) -> Any:
    """The release that the program registers, or what it refuses."""
    return program(copy, {"operators": {"certManager": operators}})


def program(copy: Path, keys: dict[str, Any]) -> Any:
    """The same, of a stack with these keys."""
    command = [sys.executable, "-c", DECLARE, json.dumps({"vmSku": "Standard_ND96isr_H100_v5", **keys})]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_the_operator_is_installed_may_be_off_and_has_checked_settings(copy: Path) -> None:
    (release,) = declared(copy, values={"crds": {"enabled": False}})
    assert (release["version"], release["namespace"]) == ("v1.19.1", "cert-manager")
    assert release["values"]["crds"] == {"enabled": False}
    assert release["values"]["webhook"]["nodeSelector"]
    assert declared(copy, enabled=False) == []
    refused = declared(copy, enabld=False, values={"crd": {}})
    assert "operators.certManager.enabld is an unknown key; near: enabled" in refused
    assert "operators.certManager.values.crd is a key that chart cert-manager v1.19.1 does not have" in refused
    charts = {"charts": {"source": "simulator/charts"}}
    assert "a folder without cert-manager/Chart.yaml" in program(copy, charts)
