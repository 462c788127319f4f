"""scheduler-plugins: the scheduler of all pods on GPU nodes, where a stack chooses it and not Volcano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.facts.scheduling import COSCHEDULER
from config.problems.errors import Problem
from config.schema.models import StackFile
from config.schema.operators import Capability, ChartSettings, Installation
from operators.scheduler_plugins.component import NAME, SchedulerPlugins
from operators.scheduler_plugins.problems import problems


class _SchedulerPlugins(Operator[ChartSettings]):
    name = NAME
    title = "scheduler-plugins"
    summary = "Gang scheduler; installed where `operators.scheduler` is `scheduler-plugins-scheduler`."
    namespace = NAME
    level = "baseline"
    settings = ChartSettings

    def provides(self, settings: ChartSettings) -> Mapping[Capability, str]:
        return {"scheduler": COSCHEDULER}

    def is_wanted(self, stack: StackFile) -> bool:
        """Where it schedules."""
        return stack.operators.of(self).enabled and stack.operators.scheduler == COSCHEDULER

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """A cluster that is too new for it, and values without which no gang is placed."""
        if self.is_wanted(installation.stack):
            yield from problems(installation.stack, installation.values(self))

    def install(self, site: Site, settings: ChartSettings, opts: pulumi.ResourceOptions) -> Installed:
        return SchedulerPlugins(self.name, site, settings, opts)


OPERATOR = _SchedulerPlugins()
