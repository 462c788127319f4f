"""Whose state a command works on: another checkout's and another user's are refused, and left as they are."""

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

Said = Callable[[], str]
NOBODY = 65534


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """What was printed since, on one line."""
    return lambda: " ".join(capsys.readouterr().err.split())


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another checkout, whose environment was entered in this shell."""
    (tmp_path / "other" / "simulator").mkdir(parents=True)
    (tmp_path / "other" / "simulator" / "__main__.py").touch()
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "other" / ".simulator"))
    return tmp_path / "other"


@pytest.mark.parametrize("command", ["up", "down", "start", "stop", "clean", "env", "status", "images", "fault"])
def test_the_state_of_another_checkout_is_refused(other: Path, said: Said, command: str) -> None:
    assert cli.main([command]) == 1
    told = said()
    assert f"SIMULATOR_HOME={other}/.simulator is the state of another checkout, {other}" in told
    assert 'unset SIMULATOR_HOME && eval "$(make -s env)"' in told
    assert f"cd {other}" in told
    assert not (other / ".simulator").exists()


@pytest.mark.parametrize("target", ["up", "shell"])
def test_it_is_refused_before_tools_are_made(other: Path, tmp_path: Path, target: str) -> None:
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


def test_a_folder_that_another_checkout_has_chosen_is_its_own(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "large-disk"))
    with monkeypatch.context() as there:
        there.setattr(paths, "ROOT", other)
        owner.claim()
    with pytest.raises(owner.Foreign, match=f"is the state of another checkout, {other}"):
        owner.claim()


def test_a_checkout_keeps_its_state_when_it_is_moved(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own folder, and one that it has chosen elsewhere."""
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
    """A state folder that this process may not read: made by root, if that is who runs the tests, and met as nobody."""
    home, user = tmp_path / "home", os.geteuid()
    monkeypatch.setenv("SIMULATOR_HOME", str(home))
    home.mkdir()
    replace(home / "daemon.lock", "")
    home.chmod(0o700 if user == 0 else 0)
    if user == 0:
        os.seteuid(NOBODY)
    yield home
    if user == 0:
        os.seteuid(user)
    home.chmod(0o700)


@pytest.mark.parametrize("command", ["status", "up", "stop", "env"])
def test_the_state_of_another_user_is_told_to_be_theirs(theirs: Path, said: Said, command: str) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert cli.main([command]) == 1
    told = said()
    assert f"{theirs}" in told
    assert "Permission denied" in told
    assert f"this is {me}" in told
    assert "SIMULATOR_HOME=<a folder>" in told
