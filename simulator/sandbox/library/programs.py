"""Runs a program as every rank of mpirun, and then simulates the framework that the ranks called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from simulator.sandbox.library import nccl_log, ranks
from simulator.sandbox.library.mpi_arguments import MpiError
from simulator.sandbox.library.ranks import Rank


@dataclass(frozen=True)
class Call:
    """One rank's call of a framework, with parsed options."""

    rank: Rank
    options: Mapping[str, Any]


class Framework(Protocol):
    """The module of a simulated framework."""

    def simulate(self, calls: Sequence[Call], variables: Mapping[str, str], log: nccl_log.Log) -> tuple[int, int]:
        """Simulates all ranks. Returns the first rank that failed and its exit code, or (0, 0)."""


def run(
    placed: Sequence[Rank], program: Sequence[str], variables: Mapping[str, str], *, tag: bool = False
) -> tuple[int, int]:
    """Runs all ranks. Returns the first failed rank and its exit code, or (0, 0). Raises MpiError if a node is lost."""
    log = nccl_log.Log(variables, tag=tag)
    try:
        ended = ranks.run(placed, program, variables)
    except ranks.Lost as error:
        raise MpiError(f"ORTE has lost communication with a remote daemon: {error} is gone.") from error
    for rank in ended:
        for line in rank.output.splitlines():
            log.line(line, rank.rank)
    sys.stdout.flush()
    if failed := next((rank for rank in ended if rank.code), None):
        return failed.rank, failed.code
    modules = {str(rank.call["module"]) for rank in ended if rank.call}
    if not modules:
        return 0, 0
    if len(modules) > 1:
        raise MpiError(f"simulator: ranks started different frameworks: {', '.join(sorted(modules))}")
    framework: Framework = importlib.import_module(f"simulator.sandbox.commands.{modules.pop()}")
    calls = [Call(placed[rank.rank], rank.call["options"]) for rank in ended if rank.call]
    return framework.simulate(calls, variables, log)
