"""Volcano: schedules a job's pods all together or not at all."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS
from config.facts.versions import versions
from operators._release import Values, release
from operators.volcano.settings import VolcanoSettings

NAME = "volcano"
_SCHEDULER = """\
actions: "{actions}"
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
wait: neither would begin (volcano#3910). Nor would a job drive others out, which it does once it is let in
(pkg/scheduler/actions/preempt/preempt.go, v1.15.1: jobs that are pending are passed over). Gangs are still placed as a
whole; that is the plugin gang's. What goes with proportion are shares of queues, of which this program uses one.
"""


class Volcano(Installed):
    """The release. Jobs depend on it: its admission webhook must answer before the first one.

    `autoscaled` is whether nodes come because pods wait.
    """

    def __init__(
        self,
        name: str,
        site: Site,
        settings: VolcanoSettings,
        *,
        autoscaled: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        chosen = values(autoscaled=autoscaled, preemption=settings.preemption)
        installed = release(NAME, site, parent=self, values=chosen, user_values=settings.values)
        self.webhooks = [installed]
        self.register_outputs({})


def values(*, autoscaled: bool, preemption: bool = False) -> Values:
    """Values of the chart: everything of it runs on the system pool."""
    actions = ["enqueue", "allocate", *(["preempt"] if preemption else []), "backfill"]
    override = {"scheduler_config_override": _SCHEDULER.format(actions=", ".join(actions))}
    return {
        "basic": {
            "image_pull_policy": "IfNotPresent",  # the image's tag never moves
            "image_tag_version": versions().images["vc-scheduler"].version,
        },
        "custom": {
            "default_ns": SYSTEM_NODES,
            "default_tolerations": SYSTEM_TOLERATIONS,
            **(override if autoscaled or preemption else {}),
        },
    }
