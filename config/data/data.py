"""Reads the data files beside this module, and other YAML that is long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's is ten times as fast; not every build of PyYAML has it."""


def read(name: str) -> Any:
    """The parsed YAML of a data file."""
    return parsed((FOLDER / name).read_text(encoding="utf-8"))


def parsed(text: str) -> Any:
    """What YAML says."""
    return yaml.load(text, _LOADER)  # noqa: S506 - a safe loader


def parsed_all(text: str) -> list[Any]:
    """What each document of it says."""
    return list(yaml.load_all(text, _LOADER))
