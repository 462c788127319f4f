"""Node Feature Discovery: the labels by which both NVIDIA operators find their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi

from components.operators import Installed, Operator, Site
from config.problems.errors import Problem
from config.problems.fixes import remove_command
from config.schema.operators import NVIDIA_NAMESPACE, Capability, ChartSettings, Installation, key_of
from operators.nfd.component import NAME, NodeFeatureDiscovery

_OWN_LABELS: Capability = "node labels"


class _NodeFeatureDiscovery(Operator[ChartSettings]):
    name = NAME
    title = "Node Feature Discovery"
    summary = "Labels nodes by their hardware."
    namespace = NVIDIA_NAMESPACE
    settings = ChartSettings

    def provides(self, settings: ChartSettings) -> Mapping[Capability, str]:
        return {_OWN_LABELS: "feature.node.kubernetes.io"}

    def problems(self, installation: Installation) -> Iterator[Problem]:
        """Two would fight over the labels of the nodes: charts that need them can bring one along."""
        for other in installation.operators.values():
            if _OWN_LABELS in other.needs and installation.value(other, "nfd", "enabled") is True:
                path = ("operators", key_of(other.name), "values", "nfd", "enabled")
                what = f"is true, but a cluster has one {self.title}, that of operators.{key_of(self.name)}"
                yield Problem(path, what, "false, or not set", remove_command(path))

    def install(self, site: Site, settings: ChartSettings, opts: pulumi.ResourceOptions) -> Installed:
        return NodeFeatureDiscovery(self.name, site, settings, opts)


OPERATOR = _NodeFeatureDiscovery()
