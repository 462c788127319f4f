"""Rules for schedulers: only one may place pods on GPU nodes, and it must support the workloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from config.data.scheduling import VOLCANO
from config.problems.errors import Problem
from config.problems.fixes import Path, either_by_hand, say
from config.schema.models import StackFile
from config.schema.operators import Installation, key_of
from config.schema.workload import WorkloadSpec

_CHOICE: Path = ("operators", "scheduler")


def second_schedulers(installation: Installation) -> Iterator[Problem]:
    """Yields additional schedulers that the user enabled; those enabled only by default are ignored."""
    chosen = installation.stack.operators.scheduler
    for operator in installation.operators.values():
        settings = installation.stack.operators.of(operator)
        name = operator.provides(settings).get("scheduler")
        if name not in (None, chosen) and settings.enabled and "enabled" in settings.model_fields_set:
            path: Path = ("operators", key_of(operator.name), "enabled")
            what = f"is true, but operators.scheduler is {chosen}, and two schedulers would give away the same GPUs"
            allowed = f"no value, or operators.scheduler {name}"
            yield Problem(path, what, allowed, either_by_hand(path, f"set operators.scheduler to {name}"))


def mpi_problems(stack: StackFile, spec: WorkloadSpec[Any]) -> Iterator[Problem]:
    """Yields MPI jobs without Volcano."""
    chosen = stack.operators.scheduler
    if spec.requires.mpi and chosen != VOLCANO:
        what = f"is {chosen}, but workload {spec.name} is an MPI job, whose pods get names and keys from Volcano alone"
        how = (
            f"give {spec.name} a stack of its own, without teams; or set operators.scheduler to {VOLCANO}, after which "
        )
        how += f"pods that name {chosen} are refused: all jobs of teams"
        yield Problem(_CHOICE, what, f"{VOLCANO}, or a stack without {spec.name}", say(how))
