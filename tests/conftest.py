"""What all tests share."""

from __future__ import annotations

import os

import pytest

from simulator.paths import ROOT

os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".simulator" / "pycache"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
SIMULATOR = ROOT / "tests" / "simulator"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The stories on the simulator first, the longest of all: what is short fills the gaps at the end."""
    items.sort(key=lambda item: SIMULATOR not in item.path.parents)


def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` means: tests on the simulator wait for the greater part, so that a core bears more than one."""
    return max(2, len(os.sched_getaffinity(0)) * 3 // 2)
