from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from simulator.command import cli
from tests.support.checkout import Checkout, clients, processes
from tests.support.world import eventually

pytestmark = pytest.mark.simulator


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout.copy(tmp_path_factory.mktemp("environment"))
    yield made
    made.make("stop")


def check_failed(answer: subprocess.CompletedProcess[str], *parts: str) -> None:
    text = answer.stdout + answer.stderr
    assert answer.returncode != 0, text
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def test_a_missing_tool(checkout: Checkout, tmp_path: Path) -> None:
    python = checkout.run("python3", "-m", "simulator.tools.bootstrap").stdout.strip() + "/bin/python"
    without_tools = {"AI_ON_AKS_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    answer = checkout.run(python, "-m", "simulator", "up", check=False, **without_tools)
    check_failed(answer, "The tool pulumi is missing: `make tools` installs it.")
    assert processes(checkout.home) == []


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "a" / "new" / "folder"
    monkeypatch.setenv("SIMULATOR_HOME", str(home))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=300 * 2**20))
    assert cli.main(["start"]) == 1
    error = capsys.readouterr().err
    assert "not enough disk space" in error
    assert "0.3 GiB are free, 1 GiB are needed" in error
    assert "SIMULATOR_HOME=<folder on a larger disk>" in error
    assert processes(home) == []


def test_a_missing_bracket_in_a_stack_file(checkout: Checkout) -> None:
    checkout.inside("pulumi stack select --create dev")
    file = checkout.folder / "Pulumi.dev.yaml"
    good = file.read_text()
    file.write_text("config:\n  ai-on-aks:vmSku: [Standard\n  ai-on-aks:nodeCount: 2\n")
    answer = checkout.make("up", check=False, STACK="dev")
    file.write_text(good)
    check_failed(answer, "Pulumi.dev.yaml, line 3", "fix: ", "git diff")
    assert processes(checkout.home) == []


def test_an_unknown_stack(checkout: Checkout) -> None:
    before = checkout.files()
    answer = checkout.make("up", check=False, STACK="nope")
    check_failed(
        answer,
        "unknown stack nope: Pulumi.nope.yaml does not exist",
        "The stacks are: av-resim, batch-inference, dev, ",
        "make up STACK=dev",
    )
    assert checkout.files() == before
    assert "nope" not in checkout.inside("pulumi stack ls").stdout


def test_env_hides_credentials(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "azureProfile.json").write_text("{}")
    credentials = {
        "ARM_CLIENT_SECRET": "x",
        "ARM_OIDC_REQUEST_URL": "x",
        "AZURE_CLIENT_ID": "x",
        "AZURE_CONFIG_DIR": str(tmp_path),
        "PULUMI_ACCESS_TOKEN": "x",
        "PULUMI_STACK": "prod",
    }
    shown = checkout.run("bash", "-c", 'eval "$(make -s env)" && env', check=True, **credentials).stdout.splitlines()
    seen = dict(line.split("=", 1) for line in shown if "=" in line)
    assert not (credentials.keys() - {"AZURE_CONFIG_DIR"}) & seen.keys()
    assert seen["AZURE_CONFIG_DIR"] == str(checkout.home / "azure-cli")
    assert seen["PULUMI_BACKEND_URL"] == f"file://{checkout.home / 'state'}?metadata=skip"


def test_env_prints_only_shell_commands_even_without_tools(checkout: Checkout, tmp_path: Path) -> None:
    """The cache has only the Python environment, whose creation takes minutes and prints progress on stderr."""
    environment = Path(checkout.run("python3", "-m", "simulator.tools.bootstrap").stdout.strip())
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / environment.name).symlink_to(environment)
    answer = checkout.make("env", AI_ON_AKS_CACHE=str(tmp_path))
    assert answer.stderr == ""
    for line in answer.stdout.splitlines():
        assert line.split(" ")[0] in ("unset", "export")


@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGINT])
def test_an_interrupted_up_ends_cleanly(checkout: Checkout, how: signal.Signals) -> None:
    command = checkout.begin("up")
    eventually(lambda: clients(checkout.home), "pulumi runs")
    eventually(lambda: "ResourceGroup" in _state(checkout), "the first resource exists")
    os.killpg(command.pid, how)
    start = time.monotonic()
    output, _ = command.communicate(timeout=120)
    assert command.returncode != 0
    assert "Error 130" in output
    assert "Interrupted. Nothing is lost" in output
    assert "Traceback" not in output
    assert time.monotonic() - start < 60
    assert clients(checkout.home) == []
    assert not list((checkout.home / "state" / ".pulumi" / "locks").rglob("*.json"))
    checkout.make("down")
    assert processes(checkout.home) == []


def _state(checkout: Checkout) -> str:
    file = checkout.home / "state" / ".pulumi" / "stacks" / "ai-on-aks" / "dev.json"
    return file.read_text() if file.exists() else ""
