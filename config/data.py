"""Reads the data files beside this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent


def read(name: str) -> Any:
    """The parsed YAML of a data file."""
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
