"""Node labeler: labels of GPU nodes that Azure's support asks for."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.models import StackFile
from config.schema.operators import NODE_TOOLS_NAMESPACE, OperatorSettings
from operators.node_labeler.component import NAME, NodeLabeler


class _NodeLabeler(Operator[OperatorSettings]):
    name = NAME
    title = "the node labeler"
    summary = "Labels GPU nodes with what identifies them to Azure's support."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = OperatorSettings

    def is_wanted(self, stack: StackFile) -> bool:
        """Where there are GPU pools."""
        return stack.operators.of(self).enabled and bool(stack.gpu_pools())

    def install(self, site: Site, settings: OperatorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NodeLabeler(self.name, site, opts)


OPERATOR = _NodeLabeler()
