from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator.command import emulated_plugins, environment
from simulator.host.paths import ROOT
from simulator.plugins import kubernetes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


def test_a_second_use_changes_no_file(home: Path) -> None:
    """A pulumi may read the passphrase then, and must not find an empty file."""
    before = environment.settings(), _written(home)
    assert (environment.settings(), _written(home)) == before


def test_replaces_another_passphrase(home: Path) -> None:
    (home / "passphrase").touch()
    named = environment.settings()["PULUMI_CONFIG_PASSPHRASE_FILE"]
    assert Path(named).read_text() == environment.PASSPHRASE


def test_deletes_cached_schemas_of_emulated_plugins(home: Path) -> None:
    """The CLI caches schemas by version, which an emulated plugin keeps when it changes."""
    schemas = home / "pulumi" / "schemas"
    schemas.mkdir(parents=True)
    for name in (f"kubernetes-{kubernetes.VERSION}+simulator.json", "random-4.0.0.json"):
        (schemas / name).touch()
    environment.settings()
    assert [kept.name for kept in schemas.iterdir()] == ["random-4.0.0.json"]


def test_creates_an_environment_for_the_official_language_host(tmp_path: Path) -> None:
    folder = tmp_path / ".venv"
    emulated_plugins.ensure_environment(folder)
    emulated_plugins.ensure_environment(folder)
    asked = "import sys, yaml; print(sys.prefix, yaml.__file__)"
    output = subprocess.run([folder / "bin" / "python", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert output.split() == [str(folder), yaml.__file__]
    assert [made.name for made in tmp_path.iterdir()] == [".venv"]


def test_keeps_the_users_environment(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    emulated_plugins.ensure_environment(tmp_path / ".venv")
    assert list((tmp_path / ".venv").iterdir()) == []


def _written(home: Path) -> dict[str, tuple[int, int]]:
    found = {
        str(path): path.lstat() for path in home.rglob("*") if not path.is_dir() and not path.name.endswith("lock")
    }
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def test_a_closed_pipe_ends_the_command_without_a_traceback(home: Path) -> None:
    command = [sys.executable, "-m", "simulator", "env"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 128 + signal.SIGPIPE
