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
    """Yields additional schedulers that the user enabled. Skips schedulers that are enabled only by default."""
    chosen = installation.stack.operators.scheduler
    for operator in installation.operators.values():
        settings = installation.stack.operators.of(operator)
        name = operator.provides(settings).get("scheduler")
        if name not in (None, chosen) and settings.enabled and "enabled" in settings.model_fields_set:
            path: Path = ("operators", key_of(operator.name), "enabled")
            what = f"is true, but operators.scheduler is {chosen}, and two schedulers would allocate the same GPUs"
            allowed = f"no value, or operators.scheduler {name}"
            yield Problem(path, what, allowed, either_by_hand(path, f"set operators.scheduler to {name}"))


def mpi_problems(stack: StackFile, spec: WorkloadSpec[Any]) -> Iterator[Problem]:
    chosen = stack.operators.scheduler
    if spec.requires.mpi and chosen != VOLCANO:
        what = f"is {chosen}, but workload {spec.name} is an MPI job, which only Volcano supports"
        how = f"run {spec.name} in another stack without teams, or set operators.scheduler to {VOLCANO}: pods with "
        how += f"scheduler {chosen}, such as those of all jobs of teams, are then rejected"
        yield Problem(_CHOICE, what, f"{VOLCANO}, or a stack without {spec.name}", say(how))
