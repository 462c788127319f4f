"""The interface of operators, and the installation of those that a stack enables, in dependency order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import Any, Generic, Protocol

import pulumi
import pulumi_kubernetes as kubernetes

from components._base import Component
from components.azure.node_pools import gpu_pools
from components.context import GpuPool
from components.namespace import Level, namespace
from config.schema.models import Settings
from config.schema.operators import OperatorSpec, Own


@dataclass(frozen=True, kw_only=True)
class InstallContext:
    """The parts of the platform that the installation of an operator uses."""

    settings: Settings
    pools: Mapping[str, GpuPool]
    image: Callable[[str], str]
    """Returns the reference of an image of `docker/`, given its folder's name."""
    registry: pulumi.Resource
    """The registry of these images. DaemonSets depend on it, because Azure may reject a new registry."""
    installed: Mapping[str, Installed[Any]]
    namespace: kubernetes.core.v1.Namespace
    scheduler: str | None
    """The only scheduler that places pods on GPU nodes, or None if the stack installs none."""


class Installed(Component, ABC, Generic[Own]):
    """One operator in the cluster, with its resources as children."""

    followed: Sequence[pulumi.Resource] = ()
    policies: Sequence[pulumi.Resource] = ()
    """The resources that determine the drivers of a new node."""
    outputs: Mapping[str, Any] = MappingProxyType({})
    webhooks: Sequence[pulumi.Resource] = ()
    """The webhooks that must answer before jobs are created. Jobs wait for drivers in their queue, not here."""
    provisioners: Sequence[pulumi.Resource] = ()
    """The resources that create the StorageClass of shared files and its volumes."""

    def __init__(
        self, name: str, context: InstallContext, settings: Own, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        self.create(context, settings)
        self.register_outputs({})

    @abstractmethod
    def create(self, context: InstallContext, settings: Own) -> None:
        """Creates the operator's resources, and sets the attributes that other components read."""


class Operator(OperatorSpec[Own], Protocol[Own]):
    """One package of `operators/`: its settings and its installation."""

    @property
    def component(self) -> type[Installed[Own]]:
        """The Pulumi component that installs the operator."""

    @property
    def follows(self) -> Sequence[str]:
        """The names of operators to install before this one, if the stack has them."""
        return ()

    @property
    def keeps_files(self) -> bool:
        """Whether the operator's namespace and claims stay when the operator is removed."""
        return False

    @property
    def level(self) -> Level:
        return "privileged"


class Operators(Component):
    installed: dict[str, Installed[Any]]

    def __init__(
        self,
        name: str,
        operators: Mapping[str, Operator[Any]],
        settings: Settings,
        image: Callable[[str], str],
        registry: pulumi.Resource,
        hooks: pulumi.ResourceHookBinding | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._hooks = hooks
        self._namespaces: dict[str, kubernetes.core.v1.Namespace] = {}
        self.installed = {}
        pools = gpu_pools(settings)
        wanted = [each for each in operators.values() if each.is_wanted(settings)]
        schedulers = [each.provides(settings.operators.of(each)).get("scheduler") for each in wanted]
        order = TopologicalSorter({name: each.follows for name, each in sorted(operators.items())}).static_order()
        for operator in (operators[name] for name in order):
            if operator.is_wanted(settings):
                context = InstallContext(
                    settings=settings,
                    pools=pools,
                    image=image,
                    registry=registry,
                    installed={name: self.installed[name] for name in operator.follows if name in self.installed},
                    namespace=self._namespace(operator),
                    scheduler=next(filter(None, schedulers), None),
                )
                own = settings.operators.of(operator)
                self.installed[operator.name] = operator.component(operator.name, context, own, self.child())
        self.register_outputs({})

    def _namespace(self, operator: Operator[Any]) -> kubernetes.core.v1.Namespace:
        name = operator.namespace
        if name not in self._namespaces:
            self._namespaces[name] = namespace(
                name, operator.level, parent=self, hooks=self._hooks, keeps_files=operator.keeps_files
            )
        return self._namespaces[name]

    @property
    def policies(self) -> list[pulumi.Resource]:
        return [policy for each in self.installed.values() for policy in each.policies]

    @property
    def outputs(self) -> dict[str, Any]:
        return {name: value for each in self.installed.values() for name, value in each.outputs.items()}

    @property
    def provisioners(self) -> list[pulumi.Resource]:
        return [each for operator in self.installed.values() for each in operator.provisioners]

    @property
    def webhooks(self) -> list[pulumi.Resource]:
        return [webhook for each in self.installed.values() for webhook in each.webhooks]
