"""Reads the YAML data files of this folder, and other long YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader is ten times faster, but not every build of PyYAML has it."""


def read(name: str) -> Any:
    return parsed((FOLDER / name).read_text(encoding="utf-8"))


def parsed(text: str) -> Any:
    return yaml.load(text, _LOADER)  # noqa: S506 - a safe loader


def parsed_all(text: str) -> list[Any]:
    return list(yaml.load_all(text, _LOADER))
