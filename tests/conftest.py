"""What all tests share."""

from __future__ import annotations

import os

import pytest

from simulator.paths import ROOT

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: tests on the simulator wait for the greater part, so that a core bears more than one."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)
