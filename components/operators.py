"""What an operator is to the platform, and all of a stack's installed, each behind those that it follows."""

from __future__ import annotations

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
class Site:
    """Where operators go, and what they find there."""

    settings: Settings
    pools: Mapping[str, GpuPool]
    image: Callable[[str], str]
    """Reference of an image of `docker/`, by the name of its folder."""
    registry: pulumi.Resource
    """Of these images. Where Azure refuses another one, no DaemonSet must have got the name of an image there."""
    installed: Mapping[str, Installed[Any]]
    """The operators that it follows, as far as the stack has them."""
    namespace: kubernetes.core.v1.Namespace
    scheduler: str | None
    """What alone places pods on GPU nodes, as pods name it; None where the stack installs nothing that does."""


class Installed(Component, Generic[Own]):
    """One operator in the cluster. Its resources are children of it."""

    followed: Sequence[pulumi.Resource] = ()
    """What operators that follow it depend on."""
    policies: Sequence[pulumi.Resource] = ()
    """What decides which drivers a new node gets."""
    outputs: Mapping[str, Any] = MappingProxyType({})
    """What the stack exports of it."""
    webhooks: Sequence[pulumi.Resource] = ()
    """What must answer before jobs are made. Drivers they wait for in their queue, until nodes offer what they request.
    """
    provisioners: Sequence[pulumi.Resource] = ()
    """What makes the StorageClass of shared files and its volumes."""

    def __init__(self, name: str, site: Site, settings: Own, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.create(site, settings)
        self.register_outputs({})

    def create(self, site: Site, settings: Own) -> None:
        """Creates its resources, and sets what others need of them."""
        raise NotImplementedError


class Operator(OperatorSpec[Own], Protocol[Own]):
    """One operator, a package of `operators/`: what the settings must know of it, and how it is installed."""

    @property
    def component(self) -> type[Installed[Own]]:
        """What installs it."""

    @property
    def follows(self) -> Sequence[str]:
        """Names of operators that come before it, where the stack has them."""
        return ()

    @property
    def keeps_files(self) -> bool:
        """Whether its namespace and claims stay when the operator is removed."""
        return False

    @property
    def level(self) -> Level:
        """What pods of its namespace may do."""
        return "privileged"


class Operators(Component):
    """The operators that the stack wants."""

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
                site = Site(
                    settings=settings,
                    pools=pools,
                    image=image,
                    registry=registry,
                    installed={name: self.installed[name] for name in operator.follows if name in self.installed},
                    namespace=self._namespace(operator),
                    scheduler=next(filter(None, schedulers), None),
                )
                own = settings.operators.of(operator)
                self.installed[operator.name] = operator.component(operator.name, site, own, self.child())
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
        """What decides which drivers a new node gets."""
        return [policy for each in self.installed.values() for policy in each.policies]

    @property
    def outputs(self) -> dict[str, Any]:
        """What the stack exports of them."""
        return {name: value for each in self.installed.values() for name, value in each.outputs.items()}

    @property
    def provisioners(self) -> list[pulumi.Resource]:
        """What makes the StorageClass of shared files and its volumes."""
        return [each for operator in self.installed.values() for each in operator.provisioners]

    @property
    def webhooks(self) -> list[pulumi.Resource]:
        """What must answer before jobs are made."""
        return [webhook for each in self.installed.values() for webhook in each.webhooks]
