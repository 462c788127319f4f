"""Processes that a killed simulator left: found by their mark, and ended; those that cannot be are told."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.command import cli
from simulator.host import ports, processes
from tests.support.waiting import eventually

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
ENDING = """
import ctypes, socket, threading, time
listening = socket.create_server(("127.0.0.1", {port}))
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@contextlib.contextmanager
def ending(port: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """A process that listens, as one that is ending may: its first thread is over, another is not."""
    with subprocess.Popen([sys.executable, "-c", ENDING.format(port=port)]) as process:
        try:
            eventually(lambda: "\nState:\tZ" in Path(f"/proc/{process.pid}/status").read_text())
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def deaf_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process with the simulator's mark that ends only when it is killed."""
    command = [sys.executable, "-c", DEAF]
    with subprocess.Popen(command, env=processes.marked_environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def deaf(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    with deaf_process() as process:
        yield process


def test_leftovers_are_killed_if_they_do_not_end(deaf: subprocess.Popen[bytes]) -> None:
    assert processes.leftovers() == [deaf.pid]
    assert processes.end_leftovers(timeout_s=1) == []


def test_one_that_is_started_meanwhile_ends_too(deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a daemon that was still there when its processes were told to end."""
    found = processes.leftovers
    with deaf_process() as first:
        monkeypatch.setattr(processes, "leftovers", lambda: [first.pid] if first.poll() is None else found())
        assert processes.end_leftovers(timeout_s=1) == []
        assert deaf.poll() is not None


def test_one_that_is_ending_and_so_has_lost_its_mark_is_waited_for(
    deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still hold its ports, which whoever starts next needs."""
    seen = iter([[deaf.pid]])
    monkeypatch.setattr(processes, "leftovers", lambda: next(seen, []))
    monkeypatch.setattr(processes, "_signal", lambda *_: None)
    assert processes.end_leftovers(timeout_s=0.1) == [deaf.pid]


def test_one_whose_first_thread_has_ended_is_waited_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks like a zombie, as processes of many threads do on a busy machine; the others still hold its ports."""
    with ending() as process:
        seen = iter([[process.pid]])
        monkeypatch.setattr(processes, "leftovers", lambda: next(seen, []))
        monkeypatch.setattr(processes, "_signal", lambda *_: None)
        assert processes.end_leftovers(timeout_s=0.1) == [process.pid]


def test_a_start_waits_for_the_port_of_one_that_is_ending() -> None:
    with ending(ports.port("arm")) as process:
        threading.Timer(0.5, process.kill).start()
        assert ports.require_free("arm") == ports.port("arm")


def test_a_stop_tells_of_processes_that_do_not_end(
    deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "_signal", lambda *_: None)
    monkeypatch.setattr(cli, "end_leftovers", lambda: processes.end_leftovers(timeout_s=0.1))
    assert cli.main(["stop"]) == 1
    assert f"processes [{deaf.pid}] of this simulator do not end" in capsys.readouterr().err


def test_state_that_cannot_be_removed_is_no_success(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = home.with_name("elsewhere")
    elsewhere.mkdir()
    home.symlink_to(elsewhere)
    assert cli.main(["clean"]) == 1
    assert "cannot be removed" in capsys.readouterr().err
