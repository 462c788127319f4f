"""Ctrl-C and SIGTERM, once and again: a command ends in order and says so, at whatever moment they come."""

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
        pause("tidying up")
    return 7

atexit.register(pause, "leaving")  # as late as Python lets anything run
sys.exit(interrupts.guarded(command, "nothing is lost"))
"""
BEGIN = """
import sys
from simulator.host import interrupts

def command():
    with interrupts.held() as let_go:
        print("beginning a process", flush=True)
        sys.stdin.readline()
        print("it is known", flush=True)
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
    """A Python program that heeds Ctrl-C, also where the tests run in the background and ignore it."""
    heeding = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), **variables}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, text=True, preexec_fn=heeding, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.kill()


def reaches(process: subprocess.Popen[str], place: str) -> None:
    """It has said so, and is asleep: a signal just before Python begins to read would be heeded after that alone."""
    assert process.stdout
    assert process.stdout.readline() == f"{place}\n"
    eventually(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")


def goes_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@HOW
def test_the_first_interrupts_and_later_ones_cut_nothing_short(how: signal.Signals) -> None:
    with running(COMMAND) as process:
        reaches(process, "working")
        process.send_signal(how)
        reaches(process, "tidying up")
        process.send_signal(how)
        process.send_signal(how)
        goes_on(process)
        reaches(process, "leaving")
        process.send_signal(how)
        _, said = process.communicate("\n")
    assert (process.returncode, said) == (interrupts.INTERRUPTED, "nothing is lost\n")


@HOW
def test_one_that_comes_when_all_is_done_changes_nothing(how: signal.Signals) -> None:
    with running(COMMAND) as process:
        for place in ("working", "tidying up"):
            reaches(process, place)
            goes_on(process)
        reaches(process, "leaving")
        process.send_signal(how)
        _, said = process.communicate("\n")
    assert (process.returncode, said) == (7, "")


@HOW
def test_one_that_comes_while_a_process_is_begun_waits_until_that_is_known(how: signal.Signals) -> None:
    with running(BEGIN) as process:
        reaches(process, "beginning a process")
        process.send_signal(how)
        said = process.communicate("\n")
    assert (process.returncode, said) == (interrupts.INTERRUPTED, ("it is known\n", "nothing is lost\n"))


@HOW
def test_pulumi_is_asked_to_end_and_killed_at_the_second(how: signal.Signals, tmp_path: Path) -> None:
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
        _, said = process.communicate()
    assert (process.returncode, said) == (interrupts.INTERRUPTED, "nothing is lost\n")
