"""Volcano: schedules a job's pods all together or not at all."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.schema.operators import ChartSettings
from operators._release import Values, release

NAME = "volcano"
_ENQUEUE_ALL = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: nodeorder
  - name: binpack
"""
"""The chart's own configuration of the scheduler without overcommit and proportion.

These let no pod of a job be made before there are nodes for all of them, and the autoscaler makes nodes for pods that
wait: neither would begin (volcano#3910). Gangs are still placed as a whole; that is the plugin gang's. What goes with
proportion are shares of queues, of which this program uses one.
"""


class Volcano(Installed):
    """The release. Jobs depend on it: its admission webhook must answer before the first one.

    `autoscaled` is whether nodes come because pods wait.
    """

    def __init__(
        self,
        name: str,
        site: Site,
        settings: ChartSettings,
        *,
        autoscaled: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        chosen = values(autoscaled=autoscaled)
        installed = release(NAME, site, parent=self, values=chosen, user_values=settings.values)
        self.webhooks = [installed]
        self.register_outputs({})


def values(*, autoscaled: bool) -> Values:
    """Values of the chart: everything of it runs on the system pool."""
    scheduler = {"scheduler_config_override": _ENQUEUE_ALL} if autoscaled else {}
    return {
        "basic": {"image_pull_policy": "IfNotPresent"},  # the image's tag never moves
        "custom": {"default_ns": SYSTEM_NODES, "default_tolerations": SYSTEM_TOLERATIONS, **scheduler},
    }
