from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulator.host import interrupts, paths
from tests.support.waiting import eventually

COMMAND = """
import atexit, sys
from simulator.host import interrupts

def pause(where):
    print(where, flush=True)
    sys.stdin.readline()

def command():
    try:
        pause("working")
    finally:
        pause("cleaning up")
    return 7

atexit.register(pause, "leaving")  # as late as Python lets anything run
sys.exit(interrupts.guarded(command, "nothing is lost"))
"""
BEGIN = """
import sys
from simulator.host import interrupts

def command():
    with interrupts.held() as let_go:
        print("starting a process", flush=True)
        sys.stdin.readline()
        print("registered", flush=True)
        let_go()
        print("going on", flush=True)
    return 7

sys.exit(interrupts.guarded(command, "nothing is lost"))
"""
UP = """
import sys
from simulator.host import interrupts
from simulator.command import pulumi_cli
sys.exit(interrupts.guarded(lambda: pulumi_cli.run("up"), "nothing is lost"))
"""
PULUMI = f"""#!{sys.executable}
import signal, sys
signal.signal(signal.SIGINT, lambda *_: print("ending", file=sys.stderr, flush=True))
print("begun", file=sys.stderr, flush=True)
while True:
    signal.pause()
"""
HOW = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])


@contextmanager
def running(code: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The program handles SIGINT, also in the background."""
    reset = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), **variables}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, text=True, preexec_fn=reset, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.kill()


def reaches(process: subprocess.Popen[str], place: str) -> None:
    """Waits until the process has printed the line and sleeps: it handles an earlier signal only after its read."""
    assert process.stdout
    assert process.stdout.readline() == f"{place}\n"
    eventually(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")


def resume(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@HOW
def test_later_signals_do_not_interrupt_the_cleanup(how: signal.Signals) -> None:
    with running(COMMAND) as process:
        reaches(process, "working")
        process.send_signal(how)
        reaches(process, "cleaning up")
        process.send_signal(how)
        process.send_signal(how)
        resume(process)
        reaches(process, "leaving")
        process.send_signal(how)
        _, output = process.communicate("\n")
    assert (process.returncode, output) == (interrupts.INTERRUPTED, "nothing is lost\n")


@HOW
def test_a_signal_after_the_end_changes_nothing(how: signal.Signals) -> None:
    with running(COMMAND) as process:
        for place in ("working", "cleaning up"):
            reaches(process, place)
            resume(process)
        reaches(process, "leaving")
        process.send_signal(how)
        _, output = process.communicate("\n")
    assert (process.returncode, output) == (7, "")


@HOW
def test_a_signal_during_the_start_of_a_process_waits(how: signal.Signals) -> None:
    with running(BEGIN) as process:
        reaches(process, "starting a process")
        process.send_signal(how)
        output = process.communicate("\n")
    assert (process.returncode, output) == (interrupts.INTERRUPTED, ("registered\n", "nothing is lost\n"))


@HOW
def test_kills_pulumi_at_the_second_signal(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.write_text(PULUMI)
    pulumi.chmod(0o755)
    own = {"SIMULATOR_HOME": str(tmp_path / "home"), "AI_ON_AKS_CACHE": str(tmp_path / "cache")}
    with running(UP, PATH=f"{pulumi.parent}:{os.environ['PATH']}", **own) as process:
        assert process.stderr
        assert process.stderr.readline() == "begun\n"
        process.send_signal(how)
        assert process.stderr.readline() == "ending\n"
        process.send_signal(how)
        _, output = process.communicate()
    assert (process.returncode, output) == (interrupts.INTERRUPTED, "nothing is lost\n")
