"""The platform: registry and data, cluster, GPU pools, a way in, and operators, in the order of their needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components import images, storage
from components._base import Component
from components.cluster import Cluster
from components.cluster_identity import ClusterIdentity
from components.cluster_network import Ground
from components.context import WorkloadContext
from components.existing import Existing
from components.identity import Federation
from components.kubernetes_access import KubernetesAccess
from components.network import Network
from components.node_pools import NodePools
from components.operators import Operator, Operators
from components.private_endpoints import PrivateEndpoints
from components.registry import Registry
from components.resource_group import ResourceGroup
from components.storage import Storage
from components.workspace import Workspace
from config.rules import platform_stack
from config.rules.cost import OUTPUT, Cost
from config.schema.models import Settings
from config.schema.names import WORKLOAD_NAMESPACE
from config.schema.network import OF_REGISTRY


class Platform(Component):
    """Everything that workloads stand on. Registry and storage need no cluster, so that data outlives clusters."""

    resource_group: ResourceGroup
    registry: Registry
    storage: list[Storage]
    network: Network | None
    """None where nodes are in AKS's."""
    cluster: Cluster
    pools: NodePools
    access: KubernetesAccess
    operators: Operators
    workspace: Workspace

    def __init__(
        self,
        name: str,
        settings: Settings,
        operators: Mapping[str, Operator[Any]],
        existing: Existing,
        cost: Cost,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.settings = settings
        self.cost = cost
        self.resource_group = ResourceGroup("group", settings, opts=self.child())
        group = self.resource_group.name
        self.registry = Registry("registry", settings, group, opts=self.child())
        self.storage = [
            Storage(account.named("storage"), settings, group, account, opts=self.child())
            for account in settings.storage.made_accounts()
        ]
        self._containers = {name: access for each in self.storage for name, access in each.containers.items()}
        self.network = Network("network", settings, group, opts=self.child()) if settings.network.own else None
        private = self._privately(self.network, group) if self.network and settings.network.private else None
        self._entrances = private.ready if private else []
        self.cluster = Cluster(
            "cluster",
            settings,
            group,
            node_os_channel=existing.node_os_channel,
            ip_ranges=existing.ip_ranges,
            ground=self._ground(self.network, group) if self.network else None,
            opts=self.child(),
        )
        self.registry.attach(self.cluster)
        self.access = KubernetesAccess("access", self.cluster, settings.cluster, opts=self.child())
        in_cluster = self.child(providers={"kubernetes": self.access.provider})
        hooks = self.access.first_contact
        self.operators = Operators(
            "operators", operators, settings, self.image, self.registry.resource, hooks, opts=in_cluster
        )
        # Side by side at first, to save minutes. Later, new nodes must not get drivers that this very update changes.
        policies = self.operators.policies if existing.cluster else []
        self.pools = NodePools(
            "pools", self.cluster, settings, counts=existing.node_counts, after=policies, opts=self.child()
        )
        # All of them, also for pods that users bring along.
        self._federation = self._identities(group) if settings.storage.by_identity() else None
        self.workspace = Workspace(
            "workspace", WORKLOAD_NAMESPACE, self._containers, hooks, federation=self._federation, opts=in_cluster
        )
        self.register_outputs({"cluster": self.cluster.name})

    def _privately(self, network: Network, group: pulumi.Output[str]) -> PrivateEndpoints:
        """The ways to registry and data where there are no public ones."""
        endpoints = PrivateEndpoints("endpoints", self.settings, network, group, opts=self.child())
        endpoints.lead_to(self.registry.name, self.registry.resource.id, OF_REGISTRY)
        for account in self.storage:
            account.open_to(endpoints)
        return endpoints

    def _ground(self, network: Network, group: pulumi.Output[str]) -> Ground:
        identity = ClusterIdentity("identity", self.settings, network, group, opts=self.child())
        return Ground(subnet=network.node_subnet, identity=identity.id, needs=identity.roles)

    def _identities(self, group: pulumi.Output[str]) -> Federation:
        settings, cluster = self.settings, self.cluster
        return Federation(
            resource_group=group, location=settings.location, cluster=settings.names.cluster, issuer=cluster.issuer
        )

    def image(self, name: str) -> str:
        """Reference of an image of `docker/`."""
        mirror = self.settings.images.registry
        return images.own(name, login_server=self.registry.login_server, mirror=mirror)

    def context(self) -> WorkloadContext:
        """What workloads are given."""
        return WorkloadContext(
            provider=self.access.provider,
            namespace=self.workspace.namespace,
            service_account=self.workspace.account,
            pools=self.pools.pools,
            rdma_resource=self.settings.rdma_resource,
            image=self.image,
            volumes=self.workspace.volumes,
            # A registry or a pool that Azure refuses must stop jobs from being replaced by ones that could not run.
            ready=[self.registry.resource, *self._entrances, *self.pools.resources, *self.operators.webhooks],
        )

    def outputs(self) -> dict[str, Any]:
        """What the stack exports of it."""
        return {
            "resourceGroup": self.resource_group.name,
            "clusterName": self.cluster.name,
            "clusterId": self.cluster.id,
            "kubeconfig": self.access.kubeconfig,  # secret
            "pools": {key: pool.agent_pool for key, pool in self.pools.pools.items()},  # ARM names by key
            "registry": self.registry.login_server,
            "storage": storage.shown(self.storage),
            "sas": pulumi.Output.secret({name: access.secrets() for name, access in self._containers.items()}),
            OUTPUT: self.cost.output(),
            platform_stack.OUTPUT: self._lending(),
        }

    def _lending(self) -> pulumi.Output[dict[str, Any]]:
        """What stacks read that run on this platform; a secret because pulumi prints every other output."""
        lending = {
            "settings": platform_stack.shared_settings(self.settings),
            "loginServer": self.registry.login_server,
            "containers": {name: access.plain() for name, access in self._containers.items()},
            **({"federation": self._federation.plain()} if self._federation else {}),
        }
        return pulumi.Output.secret(lending)
