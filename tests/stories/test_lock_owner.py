"""Who holds a stack's lock: a pulumi that works, and not one that was killed and waits for its parent to notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.command.updates import is_working_pulumi


@pytest.fixture
def pulumi(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of that name."""
    program = tmp_path / "pulumi"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen([program, "60"])
    yield process
    process.kill()
    process.wait()


def test_one_that_runs_works(pulumi: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while not is_working_pulumi(pulumi.pid) and time.monotonic() < deadline:  # its name comes with exec
        time.sleep(0.01)
    assert is_working_pulumi(pulumi.pid)


def test_one_that_was_killed_does_not_whether_its_parent_has_noticed_or_not(pulumi: subprocess.Popen[bytes]) -> None:
    pulumi.kill()
    os.waitid(os.P_PID, pulumi.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert not is_working_pulumi(pulumi.pid)
    pulumi.wait()
    assert not is_working_pulumi(pulumi.pid)


def test_another_program_does_not() -> None:
    assert not is_working_pulumi(os.getpid())
