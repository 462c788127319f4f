"""Volcano: the scheduler of all pods on GPU nodes, unless a stack has another.

It schedules a job's pods all together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.operators import Installed, Operator, Site
from config.data.scheduling import SYSTEM_NODES, SYSTEM_TOLERATIONS, VOLCANO
from config.data.versions import versions
from config.schema.models import StackFile
from config.schema.operators import Capability, ChartSettings
from operators._lib.release import Values, release

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


class VolcanoSettings(ChartSettings):
    """Who may drive whom out."""

    preemption: bool = False
    """Whether pods of a higher priority class take the GPUs of those of a lower one; else priorities only order those
    that wait.
    """

    @property
    def preempts(self) -> bool:
        return self.preemption


class Volcano(Installed[VolcanoSettings]):
    """The release. Jobs depend on it: its admission webhook must answer before the first one."""

    def create(self, site: Site, settings: VolcanoSettings) -> None:
        autoscaled = any(pool.min_nodes < pool.max_nodes for pool in site.pools.values())
        chosen = values(autoscaled=autoscaled, preemption=settings.preemption)
        self.webhooks = [release(NAME, site, parent=self, values=chosen, user_values=settings.values)]


def values(*, autoscaled: bool, preemption: bool = False) -> Values:
    """Values of the chart: everything of it runs on the system pool. `autoscaled` is whether nodes come because pods
    wait.
    """
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


class _Volcano(Operator[VolcanoSettings]):
    name = NAME
    title = "Volcano"
    summary = "Gang scheduler; installed unless `operators.scheduler` is another."
    namespace = "volcano-system"
    level = "baseline"
    settings = VolcanoSettings
    component = Volcano
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


OPERATOR = _Volcano()
