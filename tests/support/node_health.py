"""The scripts of docker/node-health, which are no package: the image has them side by side in one folder."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from simulator.host.paths import ROOT


def imported(name: str) -> ModuleType:
    """One of them. They import each other by their names alone."""
    folder = str(ROOT / "docker" / "node-health")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
