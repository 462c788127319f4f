"""Prints the lines of NCCL and nccl-tests, faster than in a real run."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = ("NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE")
DEFAULT_SUBSYSTEMS = "INIT,BOOTSTRAP,ENV"


@dataclass(frozen=True)
class Process:
    """The process that logs: one GPU of one rank."""

    rank: int
    host: str
    pid: int
    device: int


class Log:
    """The output of the program and of NCCL. NCCL_DEBUG and NCCL_DEBUG_SUBSYS filter the lines of NCCL."""

    def __init__(self, variables: Mapping[str, str], *, tag: bool = False) -> None:
        level = variables.get("NCCL_DEBUG", "NONE").upper()
        self._level = LEVELS.index(level) if level in LEVELS else 0
        names = variables.get("NCCL_DEBUG_SUBSYS", DEFAULT_SUBSYSTEMS).upper()
        self._excluded = names.startswith("^")
        self._subsystems = set(names.removeprefix("^").split(","))
        self._tag = tag

    def line(self, text: str, rank: int = 0) -> None:
        print(f"[1,{rank}]<stdout>:{text}" if self._tag else text, flush=True)

    def version(self, text: str) -> None:
        if self._level >= LEVELS.index("VERSION"):
            self.line(text)

    def info(self, process: Process, text: str, subsystems: str) -> None:
        if self._level >= LEVELS.index("INFO") and self._wanted(set(subsystems.split(","))):
            self.line(f"{_prefix(process)} NCCL INFO {text}", process.rank)

    def warn(self, process: Process, place: str, text: str) -> None:
        """Logs a warning. `place` is the file and line in NCCL's source."""
        if self._level >= LEVELS.index("WARN"):
            self.line("", process.rank)
            self.line(f"{_prefix(process)} {place} NCCL WARN {text}", process.rank)

    def _wanted(self, subsystems: set[str]) -> bool:
        named = bool(subsystems & self._subsystems) or "ALL" in self._subsystems
        return named != self._excluded


def _prefix(process: Process) -> str:
    return f"{process.host}:{process.pid}:{process.pid} [{process.device}]"


def pause(seconds: float) -> None:
    sys.stdout.flush()
    time.sleep(seconds)
