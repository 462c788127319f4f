from __future__ import annotations

import json
import multiprocessing.synchronize
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.command import cli, daemon_state, updates
from simulator.host import ports
from tests.support.waiting import eventually

Lock = Callable[[str, int], Path]
WAIT = "import sys; sys.stdin.read()"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("SIMULATOR_HOME", str(home))
    return home


@pytest.fixture
def lock(home: Path) -> Lock:
    """Writes a lock like Pulumi's file backend (pulumi/pulumi, pkg/backend/diy/lock.go)."""

    def write(stack: str, pid: int) -> Path:
        file = home / "state" / ".pulumi" / "locks" / "organization" / "ai-on-aks" / stack / "5c7e.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"pid": pid, "username": "me", "hostname": "here", "timestamp": "2026-01-01"}))
        return file

    return write


@pytest.fixture
def pulumi(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = tmp_path / "pulumi"
    program.symlink_to(sys.executable)
    process = subprocess.Popen([program, "-S", "-c", WAIT], stdin=subprocess.PIPE)
    eventually(lambda: updates.is_working_pulumi(process.pid))
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("command", ["stop", "clean"])
def test_does_not_stop_the_simulator_during_pulumi_up(
    lock: Lock, pulumi: subprocess.Popen[bytes], home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    held = lock("mlbatch", pulumi.pid)
    assert cli.main([command]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the simulator would stop, and break a running update:\n")
    assert f"  `pulumi` is working on stack mlbatch (pid {pulumi.pid}, since " in error
    assert f"interrupt it (kill -INT {pulumi.pid}); then run the same command again" in error
    assert held.exists()
    pulumi.kill()
    pulumi.wait()
    assert cli.main([command]) == 0
    assert home.exists() == (command == "stop")


def announce(ready: multiprocessing.synchronize.Event, go: multiprocessing.synchronize.Event) -> None:
    with updates.announced("make up", "mlbatch"):
        ready.set()
        go.wait()
    os._exit(0)


def test_does_not_restart_the_simulator_while_make_up_waits_for_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"pid": 1, "ready": True, "port": ports.port("arm"), "code": "another version"}
    monkeypatch.setattr(daemon_state, "running_state", lambda: state)
    context = multiprocessing.get_context("fork")
    ready, go = context.Event(), context.Event()
    other = context.Process(target=announce, args=(ready, go))
    other.start()
    ready.wait(30)
    assert cli.main(["start"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the simulator would restart, because the code of this checkout has changed, and ")
    assert f"  `make up` is working on stack mlbatch (pid {other.pid}, since " in error
    go.set()
    other.join()
    assert updates.under_way() == []


def test_lists_make_up_without_its_own_pulumi(lock: Lock, pulumi: subprocess.Popen[bytes]) -> None:
    lock("mlbatch", pulumi.pid)
    with updates.announced("make up", "mlbatch"):
        assert updates.under_way() == [], "this process announced it"
    assert [update.command for update in updates.under_way()] == ["pulumi"]


def test_ignores_killed_updates(lock: Lock, home: Path) -> None:
    lock("dev", 2**22 + 1)
    lock("olmo", os.getpid())  # another process has the number
    (home / "commands").mkdir()
    (home / "commands" / "1.json").write_text("{}")
    assert updates.under_way() == []
    assert {update.stack for update in updates.locked()} == {"dev", "olmo"}
    assert [update.stack for update in updates.locked("dev")] == ["dev"]
    assert not list((home / "commands").iterdir())


def test_a_zombie_is_not_a_running_pulumi(pulumi: subprocess.Popen[bytes]) -> None:
    pulumi.kill()
    os.waitid(os.P_PID, pulumi.pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert not updates.is_working_pulumi(pulumi.pid)
