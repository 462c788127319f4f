"""The cluster's network: AKS's own, one that the stack creates, or an existing one; public or private."""

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
"""The pods' range: a /24 for each of 4096 nodes. AKS's default, a /16, allows 256 (AKS's page on CNI Overlay). This
range does not overlap AKS's networks of nodes (10.224.0.0/12) and services (10.0.0.0/16).
"""
SERVICE_RANGE = "172.20.0.0/16"
"""The services' range in a custom network, outside 10.0.0.0/8, where most networks and AKS's default range are."""
NODES, ENDPOINTS, JUMP_BOX, BASTION = "nodes", "endpoints", "jump-box", "AzureBastionSubnet"
"""The subnets of a network that the stack creates, the last two only with a jump box.

Azure requires the name and size of Bastion's subnet (Azure's page on Bastion's configuration settings).
"""
_ENDPOINTS_PREFIX, _JUMP_BOX_PREFIX, _BASTION_PREFIX = 27, 27, 26
RESERVED_ADDRESSES = 5
"""Azure's reserved addresses in each subnet: the first four and the last (AKS's overview of CNI Overlay)."""

Use = Literal["cluster", "registry", "blob", "dfs", "file"]
ZONE_NAMES: Mapping[Use, str] = {
    "cluster": "privatelink.{region}.azmk8s.io",
    "registry": "privatelink.azurecr.io",
    "blob": "privatelink.blob.core.windows.net",
    "dfs": "privatelink.dfs.core.windows.net",
    "file": "privatelink.file.core.windows.net",
}
"""The names of private DNS zones in the public cloud (Azure's page on private endpoint DNS zone values)."""
OF_REGISTRY: tuple[Use, ...] = ("registry",)
OF_ACCOUNT: tuple[Use, ...] = ("blob", "dfs")
OF_FILES: tuple[Use, ...] = ("file",)
"""Private endpoints by resource. blobfuse2 uses dfs for hierarchical namespaces, and all accounts serve it."""


class NetworkSettings(Model):
    """The network of nodes and of private endpoints; by default AKS creates a network for the nodes."""

    model_config = ConfigDict(json_schema_extra={"text_is": "addressSpace"})  # text instead of a map sets addressSpace

    address_space: NetworkRange | None = None
    """Create a network with these addresses, a /24 or larger; nodes get its first half. Cannot change under a cluster.
    """
    id: VirtualNetworkId | None = None
    """An existing virtual network, instead of one that the stack creates."""
    node_subnet: Annotated[SubnetId | None, protects("stated")] = None
    """The network's subnet for nodes; required with `network.id`."""
    endpoint_subnet: Annotated[SubnetId | None, protects("stated")] = None
    """The network's subnet for private endpoints. Required with `network.id` if `network.private` is set or
    `storage.sharedFiles` is `nfs`.
    """
    private: Annotated[bool, protects([True, False])] = False
    """Make API server, registry and data reachable only from the network; the deployer must have access to it."""
    jump_box: JumpBoxSettings | None = None
    """Create a machine for deployments in the network of `network.addressSpace`, reachable through Azure Bastion."""
    inside: bool = False
    """Assume, until the cluster exists, that the deployer reaches `network.id` (by VPN or ExpressRoute). By default,
    the program decides by this machine's address in Azure.
    """
    zones: Annotated[tuple[PrivateZoneId, ...], Field(max_length=len(ZONE_NAMES))] = ()
    """Existing private DNS zones instead of new ones, identified by their names: `privatelink.<region>.azmk8s.io`,
    `privatelink.azurecr.io`, `privatelink.blob.core.windows.net`, `privatelink.dfs.core.windows.net`,
    `privatelink.file.core.windows.net`. With `network.id`, all zones except the first must be linked to that network.
    """
    outbound: Annotated[
        Literal["natGateway", "loadBalancer", "userDefinedRouting"],
        protects(["userDefinedRouting", "natGateway", "loadBalancer"]),
    ] = "natGateway"
    """Internet access of nodes in a custom network: `natGateway`, created by the stack or already on the subnet of
    `network.id`; AKS's `loadBalancer`; or `userDefinedRouting`, with the route table of the subnet of `network.id`, for
    example through a firewall. Without a custom network, it is `loadBalancer`.

    Azure's new networks have no default outbound access any more (AKS's page on outbound types).
    """
    policy: Annotated[Literal["none", "calico", "cilium"], protects(["cilium", "calico", "none"])] = "none"
    """Enforcement of Kubernetes network policies: `none`, `calico`, or `cilium`, which AKS recommends. Set it before
    the cluster is created.
    """
    pod_range: NetworkRange = POD_RANGE
    """Addresses of pods in a custom network; each node uses a /24 of them."""
    service_range: NetworkRange = SERVICE_RANGE
    """Addresses of Kubernetes services in a custom network, smaller than a /12."""

    @property
    def own(self) -> bool:
        return self.address_space is not None or self.id is not None

    @property
    def two_phases(self) -> bool:
        """Whether the network is reachable only after the stack has created it."""
        return self.private and self.address_space is not None

    @property
    def nat_gateway(self) -> bool:
        return self.own and self.outbound == "natGateway"

    @property
    def routed(self) -> bool:
        return self.own and self.outbound == "userDefinedRouting"

    @property
    def dns_service(self) -> str:
        """The address of the cluster's DNS service, which AKS requires with a range of services."""
        return str(IPv4Network(self.service_range)[10])

    def zone(self, use: Use, region: str) -> str | None:
        return next((id_ for id_ in self.zones if zone_use(id_, region) == use), None)


def zone_use(zone_id: str, region: str) -> Use | None:
    """Returns the use of a zone, by its name; None if a stack in this region does not use it.

    AKS also accepts a subzone: `<subzone>.privatelink.<region>.azmk8s.io` (AKS's page on private clusters).
    """
    name = ResourceName.of(zone_id).name.lower()
    for use, pattern in ZONE_NAMES.items():
        plain = pattern.format(region=region)
        if name == plain or (use == "cluster" and name.endswith(f".{plain}")):
            return use
    return None


@dataclass(frozen=True)
class Layout:
    """The subnets of a network that the stack creates, including the subnets of a jump box."""

    nodes: IPv4Network
    endpoints: IPv4Network
    jump_box: IPv4Network
    bastion: IPv4Network


def layout(address_space: str) -> Layout:
    """Returns the subnets of an address space. Even the smallest address space, a /24, has room for all of them.

    The subnets do not depend on the pools, because pools grow, and Azure cannot resize a subnet in use.
    """
    nodes, rest = IPv4Network(address_space).subnets()
    endpoints = IPv4Network((rest.network_address, _ENDPOINTS_PREFIX))
    jump_box = IPv4Network((endpoints.broadcast_address + 1, _JUMP_BOX_PREFIX))
    bastion = IPv4Network((rest.broadcast_address, _BASTION_PREFIX), strict=False)
    return Layout(nodes, endpoints, jump_box, bastion)


def usable(subnet: IPv4Network) -> int:
    return subnet.num_addresses - RESERVED_ADDRESSES
