"""AKS's checks of the nodes' subnet in a custom virtual network.

Source of error codes: AKS's list (Azure/aks-deployer, pkg/apierror/const.go). Sources of error texts:

- different networks: AKS's older API (Azure/acs-engine, pkg/api/agentPoolOnlyApi/v20180331/errors.go)
- delegation: Microsoft's page "Troubleshoot the SubnetIsDelegated error code"
- ranges: Azure/azure-cli#20810
- managed NAT gateway: cluster-api-provider-azure#5429
- number of addresses: Microsoft's page "InsufficientSubnetSize error code", Azure/AKS#456
- missing resources, gateways, reserved ranges, regions: guesses (the text for regions begins as in
  rancher/rancher#33517)
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, Problem, bad_request, invalid
from simulator.azure.ids import parse_id
from simulator.azure.kind import Use
from simulator.azure.store import Body, Record
from simulator.azure.types import _rules
from simulator.azure.types.agent_pool import nodes
from simulator.azure.types.nat_gateway import rules as gateways
from simulator.azure.types.route_table import rules as route_tables
from simulator.azure.types.subnet import rules as subnets
from simulator.azure.types.subnet.rules import TYPE as SUBNETS

RESERVED = tuple(map(ip_network, ("169.254.0.0/16", "172.30.0.0/16", "172.31.0.0/16", "192.0.2.0/24")))
"""Ranges that nodes, pods and services cannot use (AKS's page on CNI networking)."""
_IN_OWN_NETWORKS = {
    "userAssignedNATGateway": "UserAssignedNATGatewayWithManagedVNetNotAllowed",
    "userDefinedRouting": "InvalidParameter",
}
"""Error codes for outbound types that need a custom network. The second code is a guess."""
_PATH = "properties.vnetSubnetID"
_PODS_PER_NODE = 256  # AKS's page on CNI Overlay
_ADDRESSES, _GROUP = "addresses", "nodeGroup"
"""Keys of a pool's facts: the number of IP addresses, and the resource group of the machines."""


def of(world: World, properties: Body) -> Record | None:
    """Returns a pool's subnet, or None in a network that AKS manages."""
    text = properties.get("vnetSubnetID")
    return world.store.get(parse_id(text)) if text else None


def placed(world: World, cluster: Record, pool: Record, properties: Body, others: list[Record]) -> Body:
    """Checks a pool's subnet and returns the pool's facts. Raises ArmError.

    `others` are the cluster's other pools. `properties` must contain the defaults.
    """
    _check(world, cluster, pool, properties, others)
    return {_ADDRESSES: _needed(cluster, properties), _GROUP: cluster.properties["nodeResourceGroup"]}


def _check(world: World, cluster: Record, pool: Record, properties: Body, others: list[Record]) -> None:
    text, outbound = properties.get("vnetSubnetID"), cluster.properties["networkProfile"]["outboundType"]
    if any(("vnetSubnetID" in other.properties) != bool(text) for other in others):
        raise _wrong("At least one agent pool does not have subnet defined")
    if not text:
        if outbound in _IN_OWN_NETWORKS:
            raise _wrong(
                f"Outbound type is {outbound} but agent pool '{pool.id.name}' is not using custom VNet, which is not "
                "allowed.",
                _IN_OWN_NETWORKS[outbound],
            )
        return
    if outbound == "managedNATGateway":
        raise _wrong(
            f"Outbound type is {outbound} but agent pool '{pool.id.name}' is using custom VNet, which is not allowed."
        )
    subnet = _found(world, cluster, pool.id.name, text)
    network = subnet.id.parent
    if any(parse_id(other.properties["vnetSubnetID"]).parent != network for other in others):
        raise _wrong("Vnet for subnet does not match with other subnet")
    if outbound == "userAssignedNATGateway":
        _check_gateway(world, subnet)
    if outbound == "userDefinedRouting":
        _check_routes(world, subnet)
    if problems := list(_clashes(world, cluster, subnet)):
        raise invalid(problems)
    _check_size(world, cluster, pool, properties, subnet)


def uses(pool: Record) -> list[Use]:
    text = pool.properties.get("vnetSubnetID")
    if not text:
        return []
    scales = nodes.scale_set(pool.id.text, pool.id.name)
    machine = f"|providers|Microsoft.Compute|virtualMachineScaleSets|{scales}|virtualMachines|0"
    interface = f"{machine}|networkInterfaces|{scales}/ipConfigurations/ipconfig1"
    group = f"/subscriptions/{pool.id.subscription}/resourceGroups/{pool.facts[_GROUP]}"
    part = f"{group}/providers/Microsoft.Network/networkInterfaces/{interface}"
    return [Use(text, part, pool.facts[_ADDRESSES])]


def check_pods(properties: Body, cluster: Record, others: list[Record]) -> None:
    """Raises ArmError if an overlay's pod CIDR is too small for all nodes of all pools. Ignores surge nodes."""
    network = cluster.properties["networkProfile"]
    if network.get("networkPluginMode") != "overlay":
        return
    needed = _PODS_PER_NODE * sum(_nodes(pool) for pool in (properties, *(other.properties for other in others)))
    there = ip_network(network["podCidr"], strict=False).num_addresses
    if needed > there:
        raise _too_few(needed, there, network["podCidr"], "networkProfile.podCIDR", "networkProfile.podCIDR")


def _wrong(message: str, code: str = "InvalidParameter") -> ArmError:
    return bad_request(message, code=code, target=_PATH)


def _found(world: World, cluster: Record, name: str, text: str) -> Record:
    try:
        resource = parse_id(text)
    except ValueError as error:
        raise _wrong("Failed to parse VnetSubnetID") from error
    if resource.type.lower() != SUBNETS.lower():
        raise _wrong("Failed to parse VnetSubnetID")
    subnet = world.store.get(resource)
    if subnet is None:
        raise _wrong(f"The subnet {text} of agent pool '{name}' was not found.", "SubnetNotFound")
    where, wanted = _rules.region_of(world, subnet), cluster.body["location"]
    if where != wanted:
        raise _wrong(
            f"The Agentpool {name}'s vnet {resource.parent.name} is in {where}, not in the cluster's region {wanted}."
        )
    if subnet.properties["delegations"]:
        raise _wrong(
            f"AgentPoolProfile subnet with id {text} cannot be used as it's a delegated subnet. Please check "
            "https://aka.ms/adv-network-prerequest for more details.",
            "SubnetIsDelegated",
        )
    return subnet


def _check_gateway(world: World, subnet: Record) -> None:
    text = subnet.properties.get("natGateway", {}).get("id")
    gateway = world.store.get(parse_id(text)) if text else None
    if gateway is None:
        message = f"Subnet '{subnet.id.text}' must have a NAT gateway associated for outbound connection"
        raise _wrong(message, "SubnetNotAssociatedWithNATGateway")
    if not gateways.public_addresses(gateway.properties):
        message = f"NAT gateway '{gateway.id.text}' must have a public IP or IP prefix associated"
        raise _wrong(message, "NATGatewayNotAssociatedWithPublicIPOrIPPrefix")


def _check_routes(world: World, subnet: Record) -> None:
    """Error texts: hashicorp/terraform-provider-azurerm#8609, MicrosoftDocs/azure-docs#108240, Azure/AKS#1842."""
    table = _route_table(world, subnet)
    if table is None:
        message = (
            f"An existing route table has not been associated with subnet {subnet.id.text}. Please update the route "
            "table association"
        )
        raise _wrong(message, "ExistingRouteTableNotAssociatedWithSubnet")
    hop = route_tables.next_hop(table.properties)
    if hop is None:
        message = f"Default route {route_tables.ANYWHERE} missing from route table {table.id.text}"
        raise _wrong(message, "RouteTableMissingDefaultRouteError")
    if hop not in ("VirtualAppliance", "VirtualNetworkGateway"):
        message = (
            f"Default route {route_tables.ANYWHERE} has a next hop of {hop} but only next hops of VirtualAppliance or "
            "VirtualNetworkGateway are allowed. Please see http://aka.ms/aks/outboundtype for more details"
        )
        raise _wrong(message, "RouteTableInvalidNextHop")


def _route_table(world: World, subnet: Record) -> Record | None:
    text = subnet.properties.get("routeTable", {}).get("id")
    return world.store.get(parse_id(text)) if text else None


def drops_traffic(world: World, properties: Body) -> bool:
    """Returns whether routes drop the nodes' internet traffic, so that node set-up fails."""
    subnet = of(world, properties)
    table = _route_table(world, subnet) if subnet else None
    return table is not None and route_tables.next_hop(table.properties) == "None"


def _clashes(world: World, cluster: Record, subnet: Record) -> Iterator[Problem]:
    """Yields overlaps. A service range can be in the network, but not in a subnet."""
    own, network = subnets.prefix(subnet.properties), cluster.properties["networkProfile"]
    for reserved in RESERVED:
        if own.overlaps(reserved):
            text = f"The specified subnet CIDR {own} is conflicted with the reserved range {reserved}"
            yield Problem(_PATH, text, "SubnetCidrOverlapping")
    for other in subnets.of(world, subnet.id.parent):
        there = subnets.prefix(other.properties)
        for name, what, code in (
            ("serviceCidr", "service", "ServiceCidrOverlapExistingSubnetsCidr"),
            ("podCidr", "pod", "PodCidrOverlapExistingSubnetsCidr"),
        ):
            text = network.get(name)
            if text and IPv4Network(text, strict=False).overlaps(there):
                message = f"The specified {what} CIDR {text} is conflicted with an existing subnet CIDR {there}"
                yield Problem(f"networkProfile.{what}CIDR", message, code)


def _nodes(properties: Body) -> int:
    found: int = properties["maxCount" if properties.get("enableAutoScaling") else "count"]
    return found


def _needed(cluster: Record, properties: Body) -> int:
    network = cluster.properties["networkProfile"]
    flat = network["networkPlugin"] == "azure" and network.get("networkPluginMode") != "overlay"
    return _nodes(properties) * (1 + properties["maxPods"] if flat else 1)


def _check_size(world: World, cluster: Record, pool: Record, properties: Body, subnet: Record) -> None:
    needed, there = _needed(cluster, properties), subnets.free_addresses(world, subnet, but=pool.id)
    if needed > there:
        cidr = str(subnets.prefix(subnet.properties))
        raise _too_few(needed, there, cidr, subnet.id.name, _PATH)


def _too_few(needed: int, there: int, cidr: str, name: str, target: str) -> ArmError:
    message = (
        f"Pre-allocated IPs {needed} exceeds IPs available {there} in Subnet Cidr {cidr}, Subnet Name {name}. If "
        "Autoscaler is enabled, the max-count from each nodepool is counted towards this total. "
        "http://aka.ms/aks/insufficientsubnetsize"
    )
    return bad_request(message, code="InsufficientSubnetSize", target=target)
