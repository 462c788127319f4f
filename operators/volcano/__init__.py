"""Volcano: the scheduler of all pods on GPU nodes, unless a stack selects another.

It schedules all pods of a job together, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.operators import InstallContext, Installed, Operator
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
"""The chart's own configuration of the scheduler, without overcommit and proportion.

With these two plugins, a job's pods are only created when nodes for all pods exist, but the autoscaler only adds nodes
for pending pods (volcano#3910). They also prevent preemption, which skips jobs whose pods are not created
(pkg/scheduler/actions/preempt/preempt.go, v1.15.1). The plugin gang still places gangs as a whole. Without proportion,
queues have no shares, but this program uses only one queue.
"""


class VolcanoSettings(ChartSettings):
    """Settings of preemption between jobs."""

    preemption: bool = False
    """Whether pods of a higher priority class preempt those of a lower one to get their GPUs. Otherwise priorities only
    order pending pods.
    """

    @property
    def preempts(self) -> bool:
        return self.preemption


class Volcano(Installed[VolcanoSettings]):
    """The release. Jobs depend on it, because its admission webhook must answer first."""

    def create(self, context: InstallContext, settings: VolcanoSettings) -> None:
        autoscaled = any(pool.min_nodes < pool.max_nodes for pool in context.pools.values())
        chosen = values(autoscaled=autoscaled, preemption=settings.preemption)
        self.webhooks = [release(NAME, context, parent=self, values=chosen, user_values=settings.values)]


def values(*, autoscaled: bool, preemption: bool = False) -> Values:
    """Returns values of the chart. `autoscaled` is whether pools scale up for pending pods."""
    actions = ["enqueue", "allocate", *(["preempt"] if preemption else []), "backfill"]
    override = {"scheduler_config_override": _SCHEDULER.format(actions=", ".join(actions))}
    return {
        "basic": {
            "image_pull_policy": "IfNotPresent",  # the image's tag is immutable
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
    summary = "Gang scheduler; installed unless `operators.scheduler` names another."
    namespace = "volcano-system"
    level = "baseline"
    settings = VolcanoSettings
    component = Volcano
    needed_values: Sequence[tuple[str, ...]] = (
        ("custom", "scheduler_enable"),
        ("custom", "controller_enable"),
        ("custom", "admission_enable"),
    )

    def provides(self, settings: VolcanoSettings) -> Mapping[Capability, str]:
        return {"scheduler": VOLCANO}

    def is_wanted(self, stack: StackFile) -> bool:
        return stack.operators.of(self).enabled and stack.operators.scheduler == VOLCANO


OPERATOR = _Volcano()
