"""The platform: registry and data, cluster, GPU pools, a way in, and operators, in the order of their needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pulumi

from components import images, storage, way_in
from components._base import Component
from components.autoscaler_priorities import AutoscalerPriorities
from components.cluster import Cluster
from components.cluster_identity import ClusterIdentity
from components.cluster_network import OwnNetwork
from components.context import WorkloadContext
from components.existing import Existing
from components.identity import Federation
from components.jump_box import JumpBox
from components.kept_files import protects_cluster
from components.kubernetes_access import KubernetesAccess
from components.network import Network
from components.node_pools import NodePools
from components.operators import Operator, Operators
from components.private_endpoints import PrivateEndpoints
from components.registry import Registry
from components.resource_group import ResourceGroup
from components.sas_alert import SasAlert
from components.shared_files import SharedFiles, shared_class
from components.storage import Storage
from components.workspace import Workspace
from config.rules import platform_stack
from config.rules.cost import OUTPUT, Cost
from config.schema.models import Placement, Settings
from config.schema.names import WORKLOAD_NAMESPACE
from config.schema.network import OF_REGISTRY
from config.schema.operators import MONITORING, NODE_HEALTH
from config.schema.storage import Account


class Platform(Component):
    """Everything that workloads stand on. Registry and storage need no cluster, so that data outlives clusters."""

    resource_group: ResourceGroup
    registry: Registry
    storage: list[Storage]
    network: Network | None
    """None where nodes are in AKS's."""
    jump_box: JumpBox | None
    shared_files: SharedFiles | None
    cluster: Cluster
    within: bool
    """Whether there is what stands below: it needs the inside of a private network."""
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
        *,
        within: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self.settings = settings
        self.cost = cost
        self.within = within
        tags = way_in.tags(settings, within=within)
        self.resource_group = ResourceGroup("group", settings, tags, opts=self.child())
        group = self.resource_group.name
        self.registry = Registry("registry", settings, group, opts=self.child())
        self.network = self._network(settings, group, existing) if settings.network.own else None
        self.jump_box = self._way_in(self.network) if self.network else None
        entered = self.network if settings.entrances() else None
        endpoints = PrivateEndpoints("endpoints", settings, entered, group, opts=self.child()) if entered else None
        private = endpoints if settings.network.private else None
        self.storage = [self._storage(account, group, private) for account in settings.storage.made_accounts()]
        self._containers = {name: access for each in self.storage for name, access in each.containers.items()}
        if private:
            private.lead_to(self.registry.name, self.registry.resource.id, OF_REGISTRY)
        identity = self._identity(self.network, group) if self.network else None
        self.shared_files = self._shared_files(group, endpoints, identity) if endpoints and identity else None
        self._entrances = endpoints.ready if endpoints else []
        self.cluster = Cluster(
            "cluster",
            settings,
            group,
            node_os_channel=existing.node_os_channel,
            ip_ranges=existing.ip_ranges,
            own_network=self._own_network(self.network, identity) if self.network and identity else None,
            there=existing.cluster is not None,
            protect=protects_cluster(settings, existing.outputs),
            opts=self.child(),
        )
        self.registry.attach(self.cluster)
        admin = self.jump_box.admin_of(self.cluster) if self.jump_box and settings.cluster.entra else None
        if within:
            self._inside(operators, existing, None if settings.cluster.deployer_object_id else admin)
        self.register_outputs({"cluster": self.cluster.name})

    def _network(self, settings: Settings, group: pulumi.Output[str], existing: Existing) -> Network:
        return Network("network", settings, group, has_way_in=existing.has_way_in, opts=self.child())

    def _inside(
        self, operators: Mapping[str, Operator[Any]], existing: Existing, admin: pulumi.Resource | None
    ) -> None:
        """GPU nodes, and all that is in the cluster."""
        settings, group = self.settings, self.resource_group.name
        self.access = KubernetesAccess("access", self.cluster, settings.cluster, admin, opts=self.child())
        in_cluster = self.child(providers={"kubernetes": self.access.provider})
        hooks = self.access.first_contact
        self.operators = Operators(
            "operators", operators, settings, self.image, self.registry.resource, hooks, opts=in_cluster
        )
        # Side by side at first, to save minutes. Later, new nodes must not get drivers that this very update changes.
        policies = self.operators.policies if existing.cluster else []
        self.pools = NodePools(
            "pools", self.cluster, settings, there=existing.node_counts, after=policies, opts=self.child()
        )
        if settings.cluster.autoscaler.expander == "priority":
            AutoscalerPriorities("autoscaler-priorities", settings, hooks, opts=in_cluster)
        # All of them, also for pods that users bring along.
        self._federation = self._identities(group) if settings.storage.by_identity() else None
        checks = self.operators.installed.get(NODE_HEALTH)
        self.workspace = Workspace(
            "workspace",
            WORKLOAD_NAMESPACE,
            self._containers,
            hooks,
            federation=self._federation,
            checks=checks.followed if checks else None,
            opts=in_cluster,
        )
        signed = [(access, access.sas) for access in self._containers.values() if access.sas]
        if signed and (monitoring := self.operators.installed.get(MONITORING)):
            SasAlert("sas-ends", signed, self.workspace.namespace, monitoring.followed, opts=in_cluster)
        offered = [self.shared_files.offer(self.access.provider, hooks)] if self.shared_files else []
        after = self.child(provider=self.access.provider, depends_on=[self.workspace])
        self._shared_class = shared_class(settings, [*offered, *self.operators.provisioners], after)

    def _way_in(self, network: Network) -> JumpBox | None:
        chosen = self.settings.network.jump_box
        if chosen is None:
            return None
        return JumpBox("jump-box", self.settings, chosen, network, self.resource_group, opts=self.child())

    def _storage(self, account: Account, group: pulumi.Output[str], endpoints: PrivateEndpoints | None) -> Storage:
        """Who deploys from the jump box signs there; from outside, nothing is signed."""
        theirs = self.settings.cluster.deployer_object_id is not None
        return Storage(
            account.named("storage"),
            self.settings,
            group,
            account,
            deployer=self.jump_box.deployer if self.jump_box and not theirs else None,
            endpoints=endpoints,
            signs=self.within,
            opts=self.child(),
        )

    def _shared_files(
        self, group: pulumi.Output[str], endpoints: PrivateEndpoints, identity: ClusterIdentity
    ) -> SharedFiles | None:
        if self.settings.shared_files != "nfs":
            return None
        return SharedFiles("files", self.settings, group, endpoints, identity.principal, opts=self.child())

    def _identity(self, network: Network, group: pulumi.Output[str]) -> ClusterIdentity:
        return ClusterIdentity("identity", self.settings, network, group, opts=self.child())

    def _own_network(self, network: Network, identity: ClusterIdentity) -> OwnNetwork:
        return OwnNetwork(
            subnet=network.node_subnet,
            identity=identity.id,
            needs=identity.roles,
            outbound_address=network.outbound_address,
        )

    def _identities(self, group: pulumi.Output[str]) -> Federation:
        settings, cluster = self.settings, self.cluster
        return Federation(
            resource_group=group, location=settings.location, cluster=settings.names.cluster, issuer=cluster.issuer
        )

    def image(self, name: str) -> str:
        """Reference of an image of `docker/`."""
        mirror = self.settings.images.registry
        return images.own(name, login_server=self.registry.login_server, mirror=mirror)

    def context_of(self, _: Placement[Any]) -> WorkloadContext:
        """What a workload is given: all of them are in one namespace."""
        return self.context

    @cached_property
    def context(self) -> WorkloadContext:
        """What is there for workloads."""
        return WorkloadContext(
            provider=self.access.provider,
            namespace=self.workspace.namespace,
            service_account=self.workspace.account,
            pools=self.pools.pools,
            rdma_resource=self.settings.rdma_resource,
            taint_effect=self.settings.operators.failure_effect,
            image=self.image,
            volumes=self.workspace.volumes,
            shared_class=self._shared_class,
            # A registry or a pool that Azure refuses must stop jobs from being replaced by ones that could not run.
            ready=[self.registry.resource, *self._entrances, *self.pools.resources, *self.operators.webhooks],
        )

    def outputs(self) -> dict[str, Any]:
        """What the stack exports of it."""
        made = {
            "resourceGroup": self.resource_group.name,
            "clusterName": self.cluster.name,
            "clusterId": self.cluster.id,
            "registry": self.registry.login_server,
            "storage": storage.shown(self.storage),
            OUTPUT: self.cost.output(),
        }
        if not self.within:
            group = self.settings.names.resource_group
            return {**made, platform_stack.NEXT: way_in.next_command(self.settings, group)}
        done = {platform_stack.NEXT: way_in.NOTHING} if self.settings.network.two_phases else {}
        return {
            **made,
            **done,
            "kubeconfig": self.access.kubeconfig,  # secret
            "pools": {key: pool.agent_pool for key, pool in self.pools.pools.items()},  # ARM names by key
            "sas": pulumi.Output.secret({name: access.secrets() for name, access in self._containers.items()}),
            platform_stack.OUTPUT: self._lending(),
            **self.operators.outputs,
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
