from __future__ import annotations

import importlib
import sys
from types import ModuleType

from simulator.host.paths import ROOT


def imported(image: str, name: str) -> ModuleType:
    """The folders in `docker/` are not packages: an image's modules import each other by name."""
    folder = str(ROOT / "docker" / image)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
