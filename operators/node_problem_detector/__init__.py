"""node-problem-detector: conditions of GPU nodes whose driver AKS does not manage."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.schema.models import StackFile
from config.schema.operators import MONITORING, NODE_TOOLS_NAMESPACE, Capability, OperatorSettings
from operators.node_problem_detector.component import NAME, NodeProblemDetector


class NodeProblemDetectorSettings(OperatorSettings):
    """It is off unless it is asked for: its pods have the freedom of GPU nodes."""

    enabled: bool = False
    """Whether the stack has it."""


class _NodeProblemDetector(Operator[NodeProblemDetectorSettings]):
    name = NAME
    title = "node-problem-detector"
    summary = "Tells what is wrong with GPUs and InfiniBand of nodes, as their conditions."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = NodeProblemDetectorSettings
    follows = (MONITORING, "network-operator")
    needs: Mapping[Capability, str] = {"GPUs": "asks the driver that it brings"}

    def is_wanted(self, stack: StackFile) -> bool:
        """Where there are GPU pools, whose driver is never AKS's (`gpuProfile.driver` None)."""
        return stack.operators.of(self).enabled and bool(stack.gpu_pools())

    def install(self, site: Site, settings: NodeProblemDetectorSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NodeProblemDetector(self.name, site, opts)


OPERATOR = _NodeProblemDetector()
