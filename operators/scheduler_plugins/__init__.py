"""scheduler-plugins: Kubernetes' scheduler with Coscheduling, if a stack selects it instead of Volcano.

It schedules all pods of a gang together, or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import COSCHEDULER, GPU_RESOURCE, ON_SYSTEM_POOL, SYSTEM_PRIORITY, VOLCANO
from config.data.versions import versions
from config.problems.errors import Problem
from config.problems.fixes import Path, remove_command, set_command
from config.schema.models import StackFile
from config.schema.operators import Capability, ChartSettings, Installation
from operators._lib.release import Values, release

NAME = "scheduler-plugins"
PLUGINS = ("Coscheduling",)
"""The plugins to enable. The chart's other three plugins count quotas, which Kueue does, or spread pods."""
GANG_WAITS_S = 300
"""The maximum time that pods of a gang keep their nodes while the gang's other pods are created and placed."""
_VALUES: Path = ("operators", "schedulerPlugins", "values")


class SchedulerPlugins(Installed[ChartSettings]):
    """The Helm release. Jobs depend on it, because it installs the CRD of their gangs."""

    def create(self, context: InstallContext, settings: ChartSettings) -> None:
        self.webhooks = [release(NAME, context, parent=self, values=values(), user_values=settings.values)]


def values() -> Values:
    """Returns values of the chart. Its pods run on the system pool, and are evicted last there.

    Pods go to nodes with the most GPUs in use, so that jobs of whole nodes find free nodes.
    """
    place = {**ON_SYSTEM_POOL, "priorityClassName": SYSTEM_PRIORITY}
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    packing = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": GPU_RESOURCE, "weight": 1}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    return {
        "scheduler": place,
        "controller": place,
        "plugins": {"enabled": list(PLUGINS)},
        "pluginConfig": [
            {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": GANG_WAITS_S}},
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}},
        ],
    }


def problems(stack: StackFile, values: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _too_new(stack.cluster.kubernetes_version)
    scheduler, plugins = _map(values.get("scheduler")), _map(values.get("plugins"))
    name, enabled = scheduler.get("name", COSCHEDULER), plugins.get("enabled")
    if name != COSCHEDULER:
        path: Path = (*_VALUES, "scheduler", "name")
        yield Problem(path, f"is {name!r}, but pods request {COSCHEDULER}", COSCHEDULER, remove_command(path))
    if isinstance(enabled, list) and not set(PLUGINS) <= set(map(str, enabled)):
        path = (*_VALUES, "plugins", "enabled")
        what = f"has no {', '.join(PLUGINS)}, which schedules all pods of a gang together"
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


class _SchedulerPlugins(Operator[ChartSettings]):
    name = NAME
    title = "scheduler-plugins"
    summary = "Gang scheduler; installed if `operators.scheduler` is `scheduler-plugins-scheduler`."
    namespace = NAME
    level = "baseline"
    settings = ChartSettings
    component = SchedulerPlugins

    def provides(self, settings: ChartSettings) -> Mapping[Capability, str]:
        return {"scheduler": COSCHEDULER}

    def is_wanted(self, stack: StackFile) -> bool:
        return stack.operators.of(self).enabled and stack.operators.scheduler == COSCHEDULER

    def problems(self, installation: Installation) -> Iterator[Problem]:
        if self.is_wanted(installation.stack):
            yield from problems(installation.stack, installation.values(self))


OPERATOR = _SchedulerPlugins()
