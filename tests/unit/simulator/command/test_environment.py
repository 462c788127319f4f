"""The environment of `make shell`: what it names stays what it is, whoever enters it again meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator.command import environment, stand_ins
from simulator.host.paths import ROOT
from simulator.plugins import kubernetes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


def test_to_enter_it_again_changes_no_file(home: Path) -> None:
    """A pulumi that reads the passphrase at that moment must not find an empty file."""
    before = environment.settings(), _written(home)
    assert (environment.settings(), _written(home)) == before


def test_a_passphrase_that_is_another_becomes_the_simulators(home: Path) -> None:
    (home / "passphrase").touch()
    named = environment.settings()["PULUMI_CONFIG_PASSPHRASE_FILE"]
    assert Path(named).read_text() == environment.PASSPHRASE


def test_the_cli_asks_a_stand_in_anew_for_its_schema(home: Path) -> None:
    """It keeps schemas by version, and that of a stand-in stays when the stand-in changes."""
    schemas = home / "pulumi" / "schemas"
    schemas.mkdir(parents=True)
    for name in (f"kubernetes-{kubernetes.VERSION}+simulator.json", "random-4.0.0.json"):
        (schemas / name).touch()
    environment.settings()
    assert [kept.name for kept in schemas.iterdir()] == ["random-4.0.0.json"]


def test_the_official_host_finds_an_environment(tmp_path: Path) -> None:
    """Where Pulumi.yaml says: else it would install one into each checkout."""
    folder = tmp_path / ".venv"
    stand_ins.lend_environment(folder)
    stand_ins.lend_environment(folder)
    asked = "import sys, yaml; print(sys.prefix, yaml.__file__)"
    said = subprocess.run([folder / "bin" / "python", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(folder), yaml.__file__]
    assert [made.name for made in tmp_path.iterdir()] == [".venv"]


def test_the_users_own_environment_stays(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    stand_ins.lend_environment(tmp_path / ".venv")
    assert list((tmp_path / ".venv").iterdir()) == []


def _written(home: Path) -> dict[str, tuple[int, int]]:
    """What tells of each file whether it was written again or replaced."""
    found = {
        str(path): path.lstat() for path in home.rglob("*") if not path.is_dir() and not path.name.endswith("lock")
    }
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def test_a_reader_that_leaves_ends_the_command_without_a_traceback(home: Path) -> None:
    command = [sys.executable, "-m", "simulator", "env"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128 + signal.SIGPIPE
