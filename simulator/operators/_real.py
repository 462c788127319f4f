"""What real operators share: a package with go.mod, tools.yaml (its executables) and `programs.py` is one.

`PROGRAMS` of that module says which of the chart's containers each executable is and how it is called, `STATUS` what
`make status` tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Pins:
    """Of a real operator's tools.yaml."""

    version: str
    tools: tuple[str, ...]
    """Its executables, all of which are made when a pod first needs one: they share most of what is built."""


def pins(package: Path) -> Pins:
    """`package` is the operator's folder."""
    entries = yaml.safe_load((package / "tools.yaml").read_text(encoding="utf-8"))
    return Pins(str(entries[0]["version"]), tuple(entry["name"] for entry in entries if "build" in entry))
