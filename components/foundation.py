"""The Azure resources of a platform: resource group, registry, storage, network and cluster."""

from __future__ import annotations

import pulumi

from components._base import Component
from components.access import phases
from components.access.jump_box import JumpBox
from components.azure.cluster import Cluster
from components.azure.cluster_identity import ClusterIdentity
from components.azure.cluster_network import OwnNetwork
from components.azure.network import Network
from components.azure.private_endpoints import PrivateEndpoints
from components.azure.registry import Registry
from components.azure.resource_group import ResourceGroup
from components.preflight.existing import Existing
from components.storage.accounts import Storage
from components.storage.kept_files import protects_cluster
from components.storage.shared_files import SharedFiles
from config.schema.models import Settings
from config.schema.network import OF_REGISTRY
from config.schema.storage import Account


class Foundation(Component):
    """All resources that need no access to a private network: neither GPU nodes nor objects in the cluster."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        existing: Existing,
        *,
        within: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Signs SAS only if the deployer can reach the network (`within`)."""
        super().__init__(name, opts)
        self.settings = settings
        self._within = within
        tags = phases.tags(settings, within=within)
        self.resource_group = ResourceGroup("group", settings, tags, opts=self.child())
        group = self._group = self.resource_group.name
        self.registry = Registry("registry", settings, group, opts=self.child())
        self.network = self._network(existing) if settings.network.own else None
        self.jump_box = self._jump_box(self.network) if self.network else None
        entered = self.network if settings.entrances() else None
        endpoints = PrivateEndpoints("endpoints", settings, entered, group, opts=self.child()) if entered else None
        private = endpoints if settings.network.private else None
        self.storage = [self._storage(account, private) for account in settings.storage.made_accounts()]
        self.containers = {name: access for each in self.storage for name, access in each.containers.items()}
        if private:
            private.connect(self.registry.name, self.registry.resource.id, OF_REGISTRY)
        identity = self._identity(self.network) if self.network else None
        self.shared_files = self._shared_files(endpoints, identity) if endpoints and identity else None
        self.entrances = endpoints.ready if endpoints else []
        self.cluster = Cluster(
            "cluster",
            settings,
            group,
            node_os_channel=existing.node_os_channel,
            ip_ranges=existing.ip_ranges,
            own_network=_own_network(self.network, identity) if self.network and identity else None,
            there=existing.cluster is not None,
            protect=protects_cluster(settings, existing.outputs),
            opts=self.child(),
        )
        self.registry.attach(self.cluster)
        self.admin = self.jump_box.admin_of(self.cluster) if self.jump_box and settings.cluster.entra else None
        self.register_outputs({"cluster": self.cluster.name})

    def _network(self, existing: Existing) -> Network:
        return Network(
            "network", self.settings, self._group, has_jump_box_subnets=existing.has_jump_box_subnets, opts=self.child()
        )

    def _jump_box(self, network: Network) -> JumpBox | None:
        chosen = self.settings.network.jump_box
        if chosen is None:
            return None
        return JumpBox("jump-box", self.settings, chosen, network, self.resource_group, opts=self.child())

    def _storage(self, account: Account, endpoints: PrivateEndpoints | None) -> Storage:
        named = self.settings.cluster.deployer_object_id is not None
        return Storage(
            account.named("storage"),
            self.settings,
            self._group,
            account,
            deployer=self.jump_box.deployer if self.jump_box and not named else None,
            endpoints=endpoints,
            signs=self._within,
            opts=self.child(),
        )

    def _shared_files(self, endpoints: PrivateEndpoints, identity: ClusterIdentity) -> SharedFiles | None:
        if self.settings.shared_files != "nfs":
            return None
        return SharedFiles("files", self.settings, self._group, endpoints, identity.principal, opts=self.child())

    def _identity(self, network: Network) -> ClusterIdentity:
        return ClusterIdentity("identity", self.settings, network, self._group, opts=self.child())


def _own_network(network: Network, identity: ClusterIdentity) -> OwnNetwork:
    return OwnNetwork(
        subnet=network.node_subnet,
        identity=identity.id,
        needs=identity.roles,
        outbound_address=network.outbound_address,
    )
