"""What must hold where scheduler-plugins schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from config.facts.scheduling import COSCHEDULER, VOLCANO
from config.facts.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.models import StackFile
from operators.scheduler_plugins.component import NAME, PLUGINS

_VALUES: Path = ("operators", "schedulerPlugins", "values")


def problems(stack: StackFile, values: Mapping[str, Any]) -> Iterator[Problem]:
    """A cluster that is too new for it, and values without which no pod, or no gang, is placed."""
    yield from _too_new(stack.cluster.kubernetes_version)
    scheduler, plugins = _map(values.get("scheduler")), _map(values.get("plugins"))
    name, enabled = scheduler.get("name", COSCHEDULER), plugins.get("enabled")
    if name != COSCHEDULER:
        path: Path = (*_VALUES, "scheduler", "name")
        yield Problem(path, f"is {name!r}, but pods ask for {COSCHEDULER}", COSCHEDULER, remove_command(path))
    if isinstance(enabled, list) and not set(PLUGINS) <= set(map(str, enabled)):
        path = (*_VALUES, "plugins", "enabled")
        what = f"is without {', '.join(PLUGINS)}, which places gangs as a whole"
        yield Problem(path, what, f"a list with {', '.join(PLUGINS)}", remove_command(path))


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _too_new(version: str) -> Iterator[Problem]:
    pin = versions().coscheduling
    if not pin.supports(version):
        path = ("cluster", "kubernetesVersion")
        what = f"is {version}, too new for the scheduler of {NAME} {versions().charts[NAME].version}"
        yield Problem(
            path, what, f"up to {pin.kubernetes}, or operators.scheduler {VOLCANO}", set_command(path, pin.kubernetes)
        )
