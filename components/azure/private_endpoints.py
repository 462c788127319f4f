"""Private endpoints of the registry and of storage accounts, and the DNS zones that resolve their names.

A name such as `<account>.blob.core.windows.net` is an alias of a name in the zone `privatelink.blob.core.windows.net`.
If a network is linked to that zone, its clients resolve the name there (Azure's page on private endpoint DNS). Azure
writes records into the zones of an endpoint's zone group. A registry has two records in one zone: for the registry and
for its data (Azure's page on private endpoints of registries).
"""

from __future__ import annotations

from typing import Final

import pulumi
from pulumi_azure_native import network as azure
from pulumi_azure_native import privatedns

from components._base import Component
from components.azure.network import Network
from config.schema.models import Settings
from config.schema.network import ZONE_NAMES, Use
from config.schema.resource_ids import ResourceName

_EVERYWHERE: Final = "Global"


class PrivateEndpoints(Component):
    """Private endpoints, which outlive clusters."""

    ready: list[pulumi.Resource]

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
        self._resource_group = resource_group
        self._zones: dict[Use, pulumi.Input[str]] = {}
        self.ready = []
        self.register_outputs({})

    def connect(self, name: str, target: pulumi.Input[str], uses: tuple[Use, ...], key: str = "") -> None:
        """Creates an endpoint for each use of the resource with the id `target` and the ARM name `name`.

        `key` distinguishes resources of one kind in Pulumi names, which must not change with ARM names. Endpoints are
        created one after another, because concurrent requests for one account fail with
        StorageAccountOperationInProgress (hashicorp/terraform-provider-azurerm#28112).
        """
        last: list[pulumi.Resource] = []
        for use in uses:
            last = [self._endpoint(f"{use}-{key}" if key else use, name, target, use, last)]
            self.ready += last

    def _endpoint(
        self, logical: str, name: str, target: pulumi.Input[str], use: Use, after: list[pulumi.Resource]
    ) -> pulumi.Resource:
        endpoint = azure.PrivateEndpoint(
            f"endpoint-{logical}",
            private_endpoint_name=f"{name}-{use}",
            resource_group_name=self._resource_group,
            location=self._settings.location,
            subnet=azure.SubnetArgs(id=self._network.endpoint_subnet),
            private_link_service_connections=[
                azure.PrivateLinkServiceConnectionArgs(name=use, private_link_service_id=target, group_ids=[use])
            ],
            opts=self.child(depends_on=after),
        )
        return azure.PrivateDnsZoneGroup(
            f"names-{logical}",
            private_dns_zone_group_name="default",
            private_endpoint_name=endpoint.name,
            resource_group_name=self._resource_group,
            private_dns_zone_configs=[azure.PrivateDnsZoneConfigArgs(name=use, private_dns_zone_id=self._zone(use))],
            opts=self.child(),
        )

    def _zone(self, use: Use) -> pulumi.Input[str]:
        if use not in self._zones:
            self._zones[use] = self._theirs(use) or self._ours(use)
        return self._zones[use]

    def _theirs(self, use: Use) -> str | None:
        """Returns the user's zone or None. Links it to a new network. Users link zones to their existing networks."""
        found = self._settings.network.zone(use, self._settings.location)
        if found and self._network.made:
            place = ResourceName.of(found)
            self._link(use, place.name, place.group)
        return found

    def _ours(self, use: Use) -> pulumi.Output[str]:
        zone = privatedns.PrivateZone(
            f"zone-{use}",
            private_zone_name=ZONE_NAMES[use],
            resource_group_name=self._resource_group,
            location=_EVERYWHERE,
            opts=self.child(),
        )
        self._link(use, zone.name, self._resource_group)
        return zone.id

    def _link(self, use: Use, zone: pulumi.Input[str], group: pulumi.Input[str]) -> None:
        link = privatedns.VirtualNetworkLink(
            f"link-{use}",
            virtual_network_link_name=self._settings.names.cluster,
            private_zone_name=zone,
            resource_group_name=group,
            location=_EVERYWHERE,
            registration_enabled=False,
            virtual_network=privatedns.SubResourceArgs(id=self._network.id),
            opts=self.child(),
        )
        self.ready.append(link)
