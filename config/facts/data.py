"""Reads the data files beside this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's is ten times as fast; not every build of PyYAML has it."""


def read(name: str) -> Any:
    """The parsed YAML of a data file."""
    return yaml.load((FOLDER / name).read_text(encoding="utf-8"), _LOADER)  # noqa: S506 - a safe loader
