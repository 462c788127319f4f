"""Node health: who may tell of a node that it is bad, and what becomes of its jobs."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.models import StackFile
from config.schema.operators import NODE_HEALTH, NODE_TOOLS_NAMESPACE
from operators.node_health.component import NodeHealth
from operators.node_health.settings import NodeHealthSettings


class _NodeHealth(Operator[NodeHealthSettings]):
    name = NODE_HEALTH
    title = "node health"
    summary = "Lets health checks taint the nodes that they find bad."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = NodeHealthSettings
    follows = ("kueue",)

    def is_wanted(self, stack: StackFile) -> bool:
        """Where there are GPU pools."""
        return stack.operators.of(self).enabled and bool(stack.gpu_pools())

    def install(self, site: Site, settings: NodeHealthSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NodeHealth(self.name, site, settings, opts)


OPERATOR = _NodeHealth()
