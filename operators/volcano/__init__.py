"""Volcano: the scheduler of all pods on GPU nodes, unless a stack has another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from components.operators import Installed, Operator, Site
from config.facts.scheduling import VOLCANO
from config.schema.models import StackFile
from config.schema.operators import Capability
from operators.volcano.component import NAME, Volcano
from operators.volcano.settings import VolcanoSettings


class _Volcano(Operator[VolcanoSettings]):
    name = NAME
    title = "Volcano"
    summary = "Gang scheduler; installed unless `operators.scheduler` is another."
    namespace = "volcano-system"
    level = "baseline"
    settings = VolcanoSettings
    whole: Sequence[tuple[str, ...]] = (
        ("custom", "scheduler_enable"),
        ("custom", "controller_enable"),
        ("custom", "admission_enable"),
    )

    def provides(self, settings: VolcanoSettings) -> Mapping[Capability, str]:
        return {"scheduler": VOLCANO}

    def is_wanted(self, stack: StackFile) -> bool:
        """Where it schedules."""
        return stack.operators.of(self).enabled and stack.operators.scheduler == VOLCANO

    def install(self, site: Site, settings: VolcanoSettings, opts: pulumi.ResourceOptions) -> Installed:
        autoscaled = any(pool.min_nodes < pool.max_nodes for pool in site.pools.values())
        return Volcano(self.name, site, settings, autoscaled=autoscaled, opts=opts)


OPERATOR = _Volcano()
