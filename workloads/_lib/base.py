"""The interface between workloads and the program."""

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


@dataclass(frozen=True, kw_only=True)
class Run(Generic[Options]):
    """One run of a workload: options, pool, number of nodes, and image."""

    options: Options
    pool: GpuPool
    nodes: int
    image: str
    rdma_resource: str
    node_check: NodeCheck | None = None

    @classmethod
    def placed(cls, context: WorkloadContext, placement: Placement[Any], image: str, **more: Any) -> Self:
        """Returns the run that the settings describe. `image` is a folder in `docker/`; an option can override it."""
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
    """A deployed workload's names and commands in the cluster."""

    namespace: pulumi.Input[str]
    name: str
    command: pulumi.Output[str]
    more: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    ends: bool = True
    """Whether the workload soon ends by itself: true for tests; false for services and trainings without an end."""

    def shown(self, placement: Placement[Any]) -> pulumi.Output[str]:
        return pulumi.Output.concat(self.command, f"    # {placement.where}; if it waits or fails: ", self._why())

    def outputs(self, placement: Placement[Any]) -> dict[str, pulumi.Input[str] | int]:
        found = {"namespace": self.namespace, "name": self.name, "command": self.command, "why": self._why()}
        on: dict[str, str | int] = {"pool": placement.pool_key, "nodes": placement.nodes, "gpus": placement.gpus}
        return {**found, **self.more, "ends": self.ends, **on}

    def _why(self) -> pulumi.Output[str]:
        return pulumi.Output.concat("python -m diagnosis -n ", self.namespace, f" {self.name}")


class WorkloadComponent(Component):
    def __init__(self, workload: Workload[Any], name: str) -> None:
        super().__init__(name, module=f"workloads/{workload.name}")


def deploy(workload: Workload[Chosen], context: WorkloadContext, placement: Placement[Chosen]) -> Deployed:
    component = WorkloadComponent(workload, placement.name)
    deployed = workload.deploy(replace(context, parent=component), placement)
    component.register_outputs({})
    return deployed


class Workload(WorkloadSpec[Chosen], Protocol[Chosen]):
    """The interface of a workload: what the settings need to know about it, and its deployment."""

    def deploy(self, context: WorkloadContext, placement: Placement[Chosen]) -> Deployed:
        """Creates the workload's resources. Uses only the arguments and the workload's own files."""
