"""Real operators: a folder with tools.yaml, which names its executables, is one.

`PROGRAMS` of its `programs.py` is which of the chart's containers each executable is and how it is called, `STATUS`
what `make status` reports. A folder without one has a manager that needs a network or a file system to itself, because
no option changes where it listens or keeps its certificates: it runs in a sandbox, by its image's recipe in
`simulator/sandbox/recipes`.
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
    """What a real operator's tools.yaml pins."""

    version: str
    tools: tuple[str, ...]
    """Its executables, all of which are made when a pod first needs one: they share most of what is built."""


@dataclass(frozen=True)
class RealOperator:
    """One real operator."""

    programs: tuple[ImageProgram, ...]
    status: str


def pins(package: Path) -> Pins:
    """`package` is the operator's folder."""
    entries = yaml.safe_load((package / "tools.yaml").read_text(encoding="utf-8"))
    return Pins(str(entries[0]["version"]), tuple(entry["name"] for entry in entries if "build" in entry))


def find() -> tuple[RealOperator, ...]:
    """All of them, in order of their names."""
    return tuple(_read(file.parent) for file in sorted(Path(__file__).parent.glob("*/tools.yaml")))


def serves(*ports: int) -> Callable[[PodContext], Mapping[int, int]]:
    """The local port for each of these ports of a container."""
    return lambda ctx: {port: ctx.local_port(port) for port in ports}


def configuration(ctx: PodContext, path: str, whose: str) -> dict[str, Any]:
    """The pod's configuration in YAML. Raises ValueError where it is none; the program itself checks what is in it."""
    try:
        return dict(yaml.safe_load(ctx.file(path) or b""))
    except (yaml.YAMLError, TypeError, ValueError):
        raise ValueError(f"{path} is no configuration of {whose}") from None


def _read(folder: Path) -> RealOperator:
    if (folder / "programs.py").exists():
        module = importlib.import_module(f"{__package__}.{folder.name}.programs")
        return RealOperator(module.PROGRAMS, module.STATUS)
    name, version = folder.name.replace("_", "-"), pins(folder).version
    return RealOperator((), f"{name}: real {version}, which is made when a stack first has it")
