"""Finds real operators: folders with a tools.yaml, which names the operator's executables.

In `programs.py`, `PROGRAMS` maps the chart's containers to executables and arguments, and `make status` shows `STATUS`.
A folder without `programs.py` is for a manager that runs in a sandbox (`simulator/sandbox/recipes`), because it has no
options for addresses or certificates.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.kubelet.programs import ImageProgram, PodContext


@dataclass(frozen=True)
class Pins:
    """The version and executables in a real operator's tools.yaml."""

    version: str
    tools: tuple[str, ...]
    """The executables. The first use of an executable builds all, because they share most of the build."""


@dataclass(frozen=True)
class RealOperator:
    """One real operator."""

    programs: tuple[ImageProgram, ...]
    status: str


def pins(package: Path) -> Pins:
    entries = yaml.safe_load((package / "tools.yaml").read_text(encoding="utf-8"))
    return Pins(str(entries[0]["version"]), tuple(entry["name"] for entry in entries if "build" in entry))


def find() -> tuple[RealOperator, ...]:
    return tuple(_read(file.parent) for file in sorted(Path(__file__).parent.glob("*/tools.yaml")))


def serves(*ports: int) -> Callable[[PodContext], Mapping[int, int]]:
    return lambda ctx: {port: ctx.local_port(port) for port in ports}


def configuration(ctx: PodContext, path: str, program: str) -> dict[str, Any]:
    """Returns a YAML configuration file of the pod. Raises ValueError if it is missing or not a YAML mapping."""
    try:
        return dict(yaml.safe_load(ctx.file(path) or b""))
    except (yaml.YAMLError, TypeError, ValueError):
        raise ValueError(f"{path} is not a configuration of {program}") from None


def _read(folder: Path) -> RealOperator:
    if (folder / "programs.py").exists():
        module = importlib.import_module(f"{__package__}.{folder.name}.programs")
        return RealOperator(module.PROGRAMS, module.STATUS)
    name, version = folder.name.replace("_", "-"), pins(folder).version
    return RealOperator((), f"{name}: real {version}, built when a stack first uses it")
