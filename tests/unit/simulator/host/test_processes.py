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
    with subprocess.Popen([sys.executable, "-c", ENDING.format(port=port)]) as process:
        try:
            eventually(lambda: "\nState:\tZ" in Path(f"/proc/{process.pid}/status").read_text())
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def deaf_process() -> Iterator[subprocess.Popen[bytes]]:
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


def test_kills_leftovers_that_ignore_sigterm(deaf: subprocess.Popen[bytes]) -> None:
    assert processes.leftovers() == [deaf.pid]
    assert processes.end_leftovers(timeout_s=1) == []


def test_ends_a_process_that_a_leftover_starts(deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """An ending daemon may have started it."""
    found = processes.leftovers
    with deaf_process() as first:
        monkeypatch.setattr(processes, "leftovers", lambda: [first.pid] if first.poll() is None else found())
        assert processes.end_leftovers(timeout_s=1) == []
        assert deaf.poll() is not None


def test_waits_for_an_ending_process_without_a_mark(
    deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold ports that the next simulator needs."""
    seen = iter([[deaf.pid]])
    monkeypatch.setattr(processes, "leftovers", lambda: next(seen, []))
    monkeypatch.setattr(processes, "_signal", lambda *_: None)
    assert processes.end_leftovers(timeout_s=0.1) == [deaf.pid]


def test_waits_for_a_process_whose_first_thread_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It seems a zombie, but its other threads hold ports."""
    with ending() as process:
        seen = iter([[process.pid]])
        monkeypatch.setattr(processes, "leftovers", lambda: next(seen, []))
        monkeypatch.setattr(processes, "_signal", lambda *_: None)
        assert processes.end_leftovers(timeout_s=0.1) == [process.pid]


def test_a_start_waits_for_the_port_of_an_ending_process() -> None:
    with ending(ports.port("arm")) as process:
        threading.Timer(0.5, process.kill).start()
        assert ports.require_free("arm") == ports.port("arm")


def test_stop_reports_processes_that_do_not_end(
    deaf: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "_signal", lambda *_: None)
    monkeypatch.setattr(cli, "end_leftovers", lambda: processes.end_leftovers(timeout_s=0.1))
    assert cli.main(["stop"]) == 1
    assert f"processes [{deaf.pid}] of this simulator do not end" in capsys.readouterr().err


def test_clean_fails_if_it_cannot_delete_the_state(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = home.with_name("elsewhere")
    elsewhere.mkdir()
    home.symlink_to(elsewhere)
    assert cli.main(["clean"]) == 1
    assert "cannot be removed" in capsys.readouterr().err
