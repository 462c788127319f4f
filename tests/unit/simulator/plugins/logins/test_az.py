from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from simulator.command import environment
from simulator.plugins.logins import az
from tests.support.arm import CLUSTER, SUBSCRIPTION, Arm, cluster_body

GRACE = SUBSCRIPTION.directory["grace"]
Printed = pytest.CaptureFixture[str]


def test_stops_and_starts_a_cluster(arm: Arm, capsys: Printed) -> None:
    arm.put(CLUSTER, cluster_body())
    arm.done()
    for action, state in (("stop", "Stopped"), ("start", "Running")):
        assert az.main(["aks", action, "-g", "rg", "--name", "aks"]) == 0, capsys.readouterr().err
        assert arm.get(CLUSTER)["properties"]["powerState"]["code"] == state
        assert az.main(["aks", "show", "-g", "rg", "-n", "aks", "--query", "powerState.code"]) == 0
        assert json.loads(capsys.readouterr().out) == state
    assert az.main(["aks", "stop", "-g", "rg", "-n", "other"]) == 1
    assert "ERROR: The Resource" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["login"], "a login with a browser is not possible"),
        (["login", "--username", GRACE.upn, "--password", "guessed"], "AADSTS50126"),
        (["login", "--identity", "--client-id", "missing"], "No User Assigned or Delegated Managed Identity"),
        (["login", "--service-principal", "-u", "x", "-p", "y"], "--tenant TENANT"),
        (["aks", "list"], "'aks list' is not a command of this az.\nThis is not the Azure CLI"),
        (["aks", "show", "--surprise"], "This is not the Azure CLI"),
    ],
)
def test_rejects_invalid_commands(arguments: list[str], words: str, arm: Arm, capsys: Printed) -> None:
    """A failed login is not stored."""
    assert az.main(arguments) == 1
    assert words in capsys.readouterr().err
    assert not list(Path(os.environ["AZURE_CONFIG_DIR"]).glob("*"))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_prints_its_help(arguments: list[str], capsys: Printed) -> None:
    assert az.main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("This is not the Azure CLI, but the part of it that kubelogin and messages")
    assert "docs/simulator.md#the-real-azure-cli" in printed


def test_az_and_kubelogin_are_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools also contain a built kubelogin, but without a separate cache."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    monkeypatch.setenv("AAD_LOGIN_METHOD", "spn")
    assert environment.settings()["PATH"].split(os.pathsep)[0] == str(environment.LOGINS)
    assert "AAD_LOGIN_METHOD" in environment.unset()
    assert all(os.access(environment.LOGINS / name, os.X_OK) for name in ("az", "kubelogin"))
