"""scheduler-plugins: Kubernetes' scheduler with Coscheduling, which places a gang as a whole or not at all."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Site
from config.facts.scheduling import GPU_RESOURCE, SYSTEM_NODES, SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from config.schema.operators import ChartSettings
from operators._release import Values, release

NAME = "scheduler-plugins"
PLUGINS = ("Coscheduling",)
"""That are on: the chart has three more, which count quotas beside Kueue's and spread pods that are to be packed."""
GANG_WAITS_S = 300
"""How long pods of a gang keep their nodes for the others of it, which may still be made."""


class SchedulerPlugins(Installed):
    """The release. Jobs depend on it: their gangs are of its kind."""

    def __init__(
        self, name: str, site: Site, settings: ChartSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        self.webhooks = [release(NAME, site, parent=self, values=values(), user_values=settings.values)]
        self.register_outputs({})


def values() -> Values:
    """Values of the chart: all of it runs on the system pool, and is the last to be evicted there.

    Nodes whose GPUs are taken most come first, so that jobs of whole nodes find whole ones.
    """
    place = {
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
        "priorityClassName": SYSTEM_PRIORITY,
    }
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
