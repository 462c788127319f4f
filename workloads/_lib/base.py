"""What a workload is to the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import pulumi

from components._base import Component
from components.context import GpuPool, WorkloadContext
from config.schema.models import Placement
from config.schema.workload import Chosen, WorkloadOptions, WorkloadSpec
from workloads._lib.node_check import NodeCheck

Options = TypeVar("Options", bound=WorkloadOptions, covariant=True)
"""Of one run, which only reads them."""


@dataclass(frozen=True, kw_only=True)
class Run(Generic[Options]):
    """One run: where, on how much, with which options."""

    options: Options
    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    node_check: NodeCheck | None = None
    """What checks each node before the workload begins there, if anything does."""

    @classmethod
    def placed(cls, context: WorkloadContext, placement: Placement[Any], image: str, **more: Any) -> Self:
        """As the settings ask for it; `image` is the folder of `docker/` that its own is built from."""
        return cls(
            options=placement.options,
            pool=context.pools[placement.pool_key],
            nodes=placement.nodes,
            image=placement.options.image or context.image(image),
            rdma_resource=context.rdma_resource,
            node_check=_node_check(context, placement.options),
            **more,
        )


def _node_check(context: WorkloadContext, options: WorkloadOptions) -> NodeCheck | None:
    if options.node_check == "off" or context.taint_effect is None:
        return None
    return NodeCheck(
        depth=options.node_check,
        image=context.image("aksnhc"),
        taint_effect=context.taint_effect,
        of_team=options.member is not None,
    )


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """How to find a workload in the cluster."""

    namespace: pulumi.Input[str]
    name: str
    command: pulumi.Output[str]
    """Shows how it fares."""
    more: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    """Further commands, by what they show: a dashboard."""
    ends: bool = True
    """Whether it ends by itself and soon: tests do, services do not, nor do trainings whose length is left open."""

    def shown(self, placement: Placement[Any]) -> pulumi.Output[str]:
        """What the stack's output shows: its command; as a comment, on what it runs, and what tells why it waits."""
        return pulumi.Output.concat(self.command, f"    # {placement.where}; if it waits or fails: ", self._why())

    def outputs(self, placement: Placement[Any]) -> dict[str, pulumi.Input[str] | int]:
        """All of it, for programs; `why` is the command that tells what it waits for."""
        found = {"namespace": self.namespace, "name": self.name, "command": self.command, "why": self._why()}
        on: dict[str, str | int] = {"pool": placement.pool_key, "nodes": placement.nodes, "gpus": placement.gpus}
        return {**found, **self.more, "ends": self.ends, **on}

    def _why(self) -> pulumi.Output[str]:
        return pulumi.Output.concat("python -m diagnosis -n ", self.namespace, f" {self.name}")


class WorkloadComponent(Component):
    """All resources of one workload."""

    def __init__(self, workload: Workload[Any], name: str) -> None:
        super().__init__(name, module=f"workloads/{workload.name}")


def deploy(workload: Workload[Chosen], context: WorkloadContext, placement: Placement[Chosen]) -> Deployed:
    """The workload as a component, placed there."""
    component = WorkloadComponent(workload, placement.name)
    deployed = workload.deploy(replace(context, parent=component), placement)
    component.register_outputs({})
    return deployed


class Workload(WorkloadSpec[Chosen], Protocol[Chosen]):
    """One workload: what the settings must know of it, and how it is put on a platform."""

    def deploy(self, context: WorkloadContext, placement: Placement[Chosen]) -> Deployed:
        """Creates its resources; reads nothing but its arguments and its own files."""
