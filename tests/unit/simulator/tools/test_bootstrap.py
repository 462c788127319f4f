from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from simulator.tools import bootstrap


class Commands:
    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.codes = {"venv": 0, "pip": 0}

    def run(self, command: list[str]) -> int:
        self.ran.append(command)
        if command[2] == "venv":
            Path(command[3]).mkdir(parents=True)
        return self.codes[command[2]]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    fake = Commands()
    monkeypatch.setattr(bootstrap, "_run", fake.run)
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path))
    return fake


def test_creates_the_environment_once(commands: Commands, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for _ in range(2):
        assert bootstrap.main([]) == 0
    first, second = capsys.readouterr().out.split()
    assert first == second
    assert Path(first).parent == tmp_path / "venv"
    assert [command[2] for command in commands.ran] == ["venv", "pip"]
    assert "--require-hashes" in commands.ran[1]


def test_retries_a_failed_installation_from_scratch(commands: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    commands.codes["pip"] = 1
    assert bootstrap.main([]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "the locked Python dependencies could not be installed" in output.err
    commands.codes["pip"] = 0
    assert bootstrap.main([]) == 0
    assert [command[2] for command in commands.ran] == ["venv", "pip", "venv", "pip"]


def test_python_without_venv(commands: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    commands.codes["venv"] = 1
    assert bootstrap.main([]) == 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"sudo apt-get install python{version}-venv" in capsys.readouterr().err


def test_old_python_without_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "_OLDEST", (99, 0))
    assert bootstrap.main([]) == 1
    assert capsys.readouterr().err.startswith("error: Python 3.11 or newer is needed, but ")


def test_prints_a_heartbeat_while_a_command_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "_HEARTBEAT_S", 0.1)
    assert bootstrap._run(["sleep", "0.5"]) == 0
    assert "still creating the environment (0 s)\n" in capfd.readouterr().err


def test_needs_only_the_standard_library() -> None:
    """Runs with `-S -I`, without the environment's packages."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import simulator.tools.bootstrap, simulator.host.paths"
    subprocess.run([sys.executable, "-S", "-I", "-c", script], check=True, env={**os.environ, "PYTHONPATH": ""})
