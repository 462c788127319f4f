"""The identity of a control plane in a custom network, and the roles that it needs there.

The identity must exist before the cluster, because AKS first checks that it may join the nodes' subnet. A
system-assigned identity is created with the cluster. AKS also rejects it together with a custom private DNS zone (its
pages on CNI networking, on private clusters and on system-assigned identities).
"""

from __future__ import annotations

from collections.abc import Iterator

import pulumi
from pulumi_azure_native import managedidentity

from components._base import Component
from components.azure import roles
from components.azure.network import Network
from config.schema.models import Settings
from config.schema.resource_ids import ResourceName


class ClusterIdentity(Component):
    """The identity of the control plane: a new one of the stack, or an existing one of the user (`cluster.identity`).

    This class assigns all roles of the stack's identity. For the user's identity, it only assigns roles on resources
    that the stack creates; the user assigns the others (components/preflight/network.py checks that).
    """

    id: pulumi.Input[str]
    principal: roles.Principal
    roles: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        settings: Settings,
        network: Network,
        resource_group: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, opts)
        self._settings = settings
        self._network = network
        self.id, object_id = self._theirs(settings.cluster.identity) or self._ours(resource_group)
        self.principal = roles.Principal(object_id=object_id, kind="ServicePrincipal")
        self.roles = [
            roles.assign(role_name, role=role, scope=scope, principal=self.principal, parent=self)
            for role_name, role, scope in self._needed()
        ]
        self.register_outputs({"id": self.id})

    def _theirs(self, id_: str | None) -> tuple[pulumi.Input[str], pulumi.Output[str]] | None:
        if id_ is None:
            return None
        place = ResourceName.of(id_)
        found = managedidentity.get_user_assigned_identity_output(
            resource_name=place.name,
            resource_group_name=place.group,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        return id_, found.principal_id

    def _ours(self, resource_group: pulumi.Input[str]) -> tuple[pulumi.Input[str], pulumi.Output[str]]:
        identity = managedidentity.UserAssignedIdentity(
            "identity",
            resource_name_=self._settings.names.cluster,
            resource_group_name=resource_group,
            location=self._settings.location,
            opts=self.child(),
        )
        return identity.id, identity.principal_id

    def _needed(self) -> Iterator[tuple[str, str, pulumi.Output[str]]]:
        """Yields the name, role and scope of each assignment.

        The role is on the network, not the subnet: AKS also joins the network to link its DNS zone
        (MicrosoftDocs/azure-aks-docs#110). For some Services, AKS updates the subnet, which requires the right to join
        the NAT gateway (LinkedAuthorizationFailed, microsoft/tyger#320).
        """
        settings, network = self._settings, self._network
        ours = settings.cluster.identity is None
        zone = settings.network.zone("cluster", settings.location)
        if ours or network.made:
            yield "cluster-network", roles.NETWORK_CONTRIBUTOR, network.id
        if network.nat_gateway:
            yield "cluster-gateway", roles.NETWORK_CONTRIBUTOR, network.nat_gateway
        if ours and zone:
            yield "cluster-zone", roles.PRIVATE_DNS_ZONE_CONTRIBUTOR, pulumi.Output.from_input(zone)
