from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.command import cli, owner
from simulator.host import paths
from simulator.host.files import replace

Errors = Callable[[], str]
OTHER_USER = 65534


@pytest.fixture
def errors(capsys: pytest.CaptureFixture[str]) -> Errors:
    return lambda: " ".join(capsys.readouterr().err.split())


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This shell has another checkout's environment."""
    (tmp_path / "other" / "simulator").mkdir(parents=True)
    (tmp_path / "other" / "simulator" / "__main__.py").touch()
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "other" / ".simulator"))
    return tmp_path / "other"


@pytest.mark.parametrize("command", ["up", "down", "start", "stop", "clean", "env", "status", "images", "fault"])
def test_rejects_the_state_of_another_checkout(other: Path, errors: Errors, command: str) -> None:
    assert cli.main([command]) == 1
    assert errors() == (
        f"error: SIMULATOR_HOME={other}/.simulator is the state of another checkout, {other}. {paths.ROOT} may not "
        'change its stacks. to use the state of this checkout: unset SIMULATOR_HOME && eval "$(make -s env)" '
        f"to use the other checkout: cd {other}"
    )
    assert not (other / ".simulator").exists()


@pytest.mark.parametrize("target", ["up", "shell"])
def test_rejects_it_before_tools_are_installed(other: Path, tmp_path: Path, target: str) -> None:
    changed = {"SIMULATOR_HOME": str(other / ".simulator"), "AI_ON_AKS_CACHE": str(tmp_path / "cache"), "STACK": "dev"}
    done = subprocess.run(
        ["make", "-s", target, f"PYTHON_DIR={sys.prefix}"],
        cwd=paths.ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)} | changed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"is the state of another checkout, {other}" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_rejects_a_folder_that_another_checkout_uses(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "large-disk"))
    with monkeypatch.context() as there:
        there.setattr(paths, "ROOT", other)
        owner.claim()
    with pytest.raises(owner.Foreign, match=f"is the state of another checkout, {other}"):
        owner.claim()


def test_a_moved_checkout_keeps_its_state(other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for root in (other, tmp_path / "moved"):
        if root != other:
            other.rename(root)
        monkeypatch.setattr(paths, "ROOT", root)
        for home in (root / ".simulator", tmp_path / "large-disk"):
            monkeypatch.setenv("SIMULATOR_HOME", str(home))
            owner.claim()
            assert (home / "checkout").read_text() == str(root)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder that this process may not read. Root reads it as another user."""
    home, user = tmp_path / "home", os.geteuid()
    monkeypatch.setenv("SIMULATOR_HOME", str(home))
    home.mkdir()
    replace(home / "daemon.lock", "")
    home.chmod(0o700 if user == 0 else 0)
    if user == 0:
        os.seteuid(OTHER_USER)
    yield home
    if user == 0:
        os.seteuid(user)
    home.chmod(0o700)


@pytest.mark.parametrize("command", ["status", "up", "stop", "env"])
def test_rejects_the_state_of_another_user(theirs: Path, errors: Errors, command: str) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert cli.main([command]) == 1
    error = errors()
    parts = (f"{theirs}", "Permission denied", f"and you are {me}", "SIMULATOR_HOME=<folder> <command>")
    assert [part for part in parts if part not in error] == []
