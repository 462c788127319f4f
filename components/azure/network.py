"""The network of nodes and private endpoints: a new one, or an existing one."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import network as azure

from components._base import Component
from config.schema.models import Settings
from config.schema.network import BASTION, ENDPOINTS, JUMP_BOX, NODES, layout


class Network(Component):
    """A network, which outlives clusters. Create it only if AKS does not create the nodes' network."""

    id: pulumi.Output[str]
    node_subnet: pulumi.Output[str]
    endpoint_subnet: pulumi.Output[str]
    nat_gateway: pulumi.Output[str] | None = None
    outbound_address: pulumi.Output[str] | None = None
    made: bool

    def __init__(
        self,
        name: str,
        settings: Settings,
        resource_group: pulumi.Input[str],
        *,
        has_jump_box_subnets: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the network, or refers to an existing one.

        Keeps existing subnets of a jump box (`has_jump_box_subnets`), because Pulumi updates the network before it
        deletes the jump box, and Azure refuses to remove subnets in use.
        """
        super().__init__(name, opts)
        self._settings, self._has_jump_box_subnets = settings, has_jump_box_subnets
        self._resource_group = resource_group
        chosen = settings.network
        self.made = chosen.address_space is not None
        if chosen.address_space:
            self.id = self._virtual_network(chosen.address_space).id
            self.node_subnet, self.endpoint_subnet = self.subnet(NODES), self.subnet(ENDPOINTS)
        else:
            self.id, self.node_subnet, self.endpoint_subnet = (
                pulumi.Output.from_input(id_ or "")
                for id_ in (chosen.id, chosen.node_subnet, chosen.endpoint_subnet or chosen.node_subnet)
            )
        self.register_outputs({"id": self.id})

    def _virtual_network(self, address_space: str) -> azure.VirtualNetwork:
        """Creates the network with inline subnets. Concurrent writes of separate subnets would fail with 409."""
        subnets = layout(address_space)
        self.nat_gateway = outbound = self._nat_gateway().id if self._settings.network.nat_gateway else None
        jump_box_subnets = [
            _subnet(JUMP_BOX, str(subnets.jump_box), outbound),
            azure.SubnetArgs(name=BASTION, address_prefix=str(subnets.bastion)),  # managed by Azure
        ]
        return azure.VirtualNetwork(
            "virtual-network",
            virtual_network_name=self._settings.names.cluster,
            resource_group_name=self._resource_group,
            location=self._settings.location,
            address_space=azure.AddressSpaceArgs(address_prefixes=[address_space]),
            subnets=[
                _subnet(NODES, str(subnets.nodes), outbound),
                _subnet(ENDPOINTS, str(subnets.endpoints)),
                *(jump_box_subnets if self._settings.network.jump_box or self._has_jump_box_subnets else ()),
            ],
            opts=self.child(),
        )

    def subnet(self, name: str) -> pulumi.Output[str]:
        return pulumi.Output.concat(self.id, f"/subnets/{name}")

    def _nat_gateway(self) -> azure.NatGateway:
        """Creates a NAT gateway. In a custom network, AKS does not create one (its page on NAT gateways)."""
        name, location = self._settings.names.cluster, self._settings.location
        address = public_address(self, "outbound-address", f"{name}-outbound", self._resource_group, location)
        self.outbound_address = address.ip_address.apply(str)
        return azure.NatGateway(
            "nat-gateway",
            nat_gateway_name=name,
            resource_group_name=self._resource_group,
            location=location,
            sku=azure.NatGatewaySkuArgs(name=azure.NatGatewaySkuName.STANDARD),
            public_ip_addresses=[azure.SubResourceArgs(id=address.id)],
            opts=self.child(),
        )


def public_address(
    parent: Component, logical: str, name: str, resource_group: pulumi.Input[str], location: str
) -> azure.PublicIPAddress:
    """Creates a static address, in the tier that NAT gateways and Bastions require."""
    return azure.PublicIPAddress(
        logical,
        public_ip_address_name=name,
        resource_group_name=resource_group,
        location=location,
        public_ip_allocation_method=azure.IPAllocationMethod.STATIC,
        sku=azure.PublicIPAddressSkuArgs(name=azure.PublicIPAddressSkuName.STANDARD),
        opts=parent.child(),
    )


def _subnet(name: str, prefix: str, nat_gateway: pulumi.Input[str] | None = None) -> azure.SubnetArgs:
    """Returns a subnet without default outbound access, which this API version enables, but AKS no longer uses.

    Network policies for private endpoints are off (Azure's default), so that the subnet's rules do not affect them.
    """
    return azure.SubnetArgs(
        name=name,
        address_prefix=prefix,
        default_outbound_access=False,
        nat_gateway=azure.SubResourceArgs(id=nat_gateway) if nat_gateway else None,
        private_endpoint_network_policies="Disabled",
    )
