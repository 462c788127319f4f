"""The network of a cluster: AKS's, one that the stack makes, or one that is there; and whether all is private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from config.schema.base import Model, protects
from config.schema.ip_ranges import NetworkRange
from config.schema.jump_box import JumpBoxSettings
from config.schema.resource_ids import PrivateZoneId, ResourceName, SubnetId, VirtualNetworkId

POD_RANGE = "10.240.0.0/12"
"""Each node has a /24 of it (AKS's page on CNI Overlay): room for 4096, where AKS's default, a /16, has it for 256.

It is clear of the networks that AKS makes for nodes (10.224.0.0/12) and for services (10.0.0.0/16).
"""
SERVICE_RANGE = "172.20.0.0/16"
"""In a network of one's own, whose addresses mostly begin with 10, as do AKS's own for services."""
NODES, ENDPOINTS, JUMP_BOX, BASTION = "nodes", "endpoints", "jump-box", "AzureBastionSubnet"
"""The subnets of a network that the stack makes; the last two, with a jump box alone.

Azure finds the last by its name (its page on Bastion's configuration settings, as for its size).
"""
_ENDPOINTS_PREFIX, _JUMP_BOX_PREFIX, _BASTION_PREFIX = 27, 27, 26
RESERVED_ADDRESSES = 5
"""Of each subnet, Azure keeps the first four addresses and the last (AKS's overview of CNI Overlay)."""

Use = Literal["cluster", "registry", "blob", "dfs", "file"]
"""What a private DNS zone has the names of."""
ZONE_NAMES: Mapping[Use, str] = {
    "cluster": "privatelink.{region}.azmk8s.io",
    "registry": "privatelink.azurecr.io",
    "blob": "privatelink.blob.core.windows.net",
    "dfs": "privatelink.dfs.core.windows.net",
    "file": "privatelink.file.core.windows.net",
}
"""In the public cloud (Azure's page on private endpoint DNS zone values)."""
OF_REGISTRY: tuple[Use, ...] = ("registry",)
OF_ACCOUNT: tuple[Use, ...] = ("blob", "dfs")
OF_FILES: tuple[Use, ...] = ("file",)
"""What has private endpoints. blobfuse2 reaches a hierarchical namespace by dfs; what has none answers there too."""


class NetworkSettings(Model):
    """The network of nodes and of private endpoints; by default AKS makes one for its nodes."""

    model_config = ConfigDict(json_schema_extra={"text_is": "addressSpace"})  # what text in place of the map means

    address_space: NetworkRange | None = None
    """Make a network of these addresses, a /24 or more: nodes have its first half. It cannot be changed under a
    cluster.
    """
    id: VirtualNetworkId | None = None
    """A virtual network that is there already, in place of one that the stack makes."""
    node_subnet: Annotated[SubnetId | None, protects("stated")] = None
    """Its subnet for nodes; needed with `network.id`."""
    endpoint_subnet: Annotated[SubnetId | None, protects("stated")] = None
    """Its subnet for private endpoints; needed with `network.id` where there are any (`network.private`,
    `storage.sharedFiles` `nfs`).
    """
    private: Annotated[bool, protects([True, False])] = False
    """Let API server, registry and data be reached from within the network alone; whoever deploys must be inside."""
    jump_box: JumpBoxSettings | None = None
    """Make a machine in the network from which one deploys, reached by Azure Bastion; for `network.addressSpace`."""
    inside: bool = False
    """Before there is a cluster to ask, take it that whoever deploys reaches the inside of `network.id` (by VPN or
    ExpressRoute); by default the address that this machine has in Azure tells.
    """
    zones: Annotated[tuple[PrivateZoneId, ...], Field(max_length=len(ZONE_NAMES))] = ()
    """Private DNS zones of yours in place of new ones, each told by its name: `privatelink.<region>.azmk8s.io`,
    `privatelink.azurecr.io`, `privatelink.blob.core.windows.net`, `privatelink.dfs.core.windows.net`,
    `privatelink.file.core.windows.net`; with `network.id`, all but the first must be linked to it.
    """
    outbound: Annotated[
        Literal["natGateway", "loadBalancer", "userDefinedRouting"],
        protects(["userDefinedRouting", "natGateway", "loadBalancer"]),
    ] = "natGateway"
    """How nodes of a custom network reach the internet: `natGateway`, which the stack makes, or which the subnet
    of `network.id` has; AKS's `loadBalancer`; or `userDefinedRouting`, by the route table that the subnet of
    `network.id` has, through a firewall for instance. In AKS's network it is `loadBalancer`.

    New networks of Azure have no way out of their own any more (AKS's page on outbound types).
    """
    policy: Annotated[Literal["none", "calico", "cilium"], protects(["cilium", "calico", "none"])] = "none"
    """What enforces network policies of Kubernetes: nothing (`none`), `calico`, or `cilium`, which AKS recommends. Set
    it before the cluster is created.
    """
    pod_range: NetworkRange = POD_RANGE
    """Addresses of pods, in a network of one's own; each node takes a /24 of them."""
    service_range: NetworkRange = SERVICE_RANGE
    """Addresses of Kubernetes services, in a network of one's own; less than a /12."""

    @property
    def own(self) -> bool:
        """Whether nodes are in another network than AKS's."""
        return self.address_space is not None or self.id is not None

    @property
    def two_phases(self) -> bool:
        """Whether nobody is inside before the stack has made the network."""
        return self.private and self.address_space is not None

    @property
    def nat_gateway(self) -> bool:
        """Whether nodes reach the internet by a NAT gateway."""
        return self.own and self.outbound == "natGateway"

    @property
    def routed(self) -> bool:
        """Whether nodes reach the internet by the user's own routes."""
        return self.own and self.outbound == "userDefinedRouting"

    @property
    def dns_service(self) -> str:
        """The address of the cluster's DNS, which AKS asks for with a range of services."""
        return str(IPv4Network(self.service_range)[10])

    def zone(self, use: Use, region: str) -> str | None:
        """The id of the user's zone for these names, if there is one."""
        return next((id_ for id_ in self.zones if zone_use(id_, region) == use), None)


def zone_use(zone_id: str, region: str) -> Use | None:
    """What a zone is for, by its name; None where it is none of those that a stack in the region uses.

    AKS also takes a zone below its own: `<subzone>.privatelink.<region>.azmk8s.io` (its page on private clusters).
    """
    name = ResourceName.of(zone_id).name.lower()
    for use, pattern in ZONE_NAMES.items():
        plain = pattern.format(region=region)
        if name == plain or (use == "cluster" and name.endswith(f".{plain}")):
            return use
    return None


@dataclass(frozen=True)
class Layout:
    """The subnets of a network that the stack makes, and where those of a way in are, if there is one."""

    nodes: IPv4Network
    endpoints: IPv4Network
    jump_box: IPv4Network
    bastion: IPv4Network


def layout(address_space: str) -> Layout:
    """The subnets of an address space.

    They follow from it alone and not from the pools: Azure resizes no subnet that is in use, and pools grow. The
    smallest address space, a /24, has room for all of them.
    """
    nodes, rest = IPv4Network(address_space).subnets()
    endpoints = IPv4Network((rest.network_address, _ENDPOINTS_PREFIX))
    jump_box = IPv4Network((endpoints.broadcast_address + 1, _JUMP_BOX_PREFIX))
    bastion = IPv4Network((rest.broadcast_address, _BASTION_PREFIX), strict=False)
    return Layout(nodes, endpoints, jump_box, bastion)


def usable(subnet: IPv4Network) -> int:
    """How many addresses of a subnet can be given out."""
    return subnet.num_addresses - RESERVED_ADDRESSES
