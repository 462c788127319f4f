"""What a workload is to the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pulumi

from components.context import WorkloadContext
from config.models import Placement
from config.workload import WorkloadSpec


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """How to find a workload in the cluster."""

    namespace: pulumi.Output[str]
    name: pulumi.Output[str]
    command: pulumi.Output[str]
    """Shows how it fares."""
    more: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Further commands, by what they show: a dashboard."""
    ends: bool = True
    """Whether it ends by itself and soon: tests do, services do not, nor do trainings whose length is left open."""

    def outputs(self) -> dict[str, pulumi.Output[str] | bool]:
        """As the stack exports it."""
        found = {"namespace": self.namespace, "name": self.name, "command": self.command}
        return {**found, **self.more, "ends": self.ends}


class Workload(WorkloadSpec, Protocol):
    """One workload: what the settings must know of it, and how it is put on a platform."""

    def deploy(self, context: WorkloadContext, placement: Placement) -> Deployed:
        """Creates its resources; reads nothing but its arguments and its own files."""
