"""Checks Azure's answers (JSON of the REST API) about an existing network for a stack.

config/rules/addresses.py checks networks that the stack creates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network

from config.data.azure_roles import guid
from config.problems.fixes import set_command
from config.rules.addresses import addresses_needed, endpoint_addresses, ranges
from config.rules.subscription import Json, Objection
from config.schema.ip_ranges import RESERVED, elsewhere
from config.schema.models import Settings
from config.schema.network import ZONE_NAMES, usable
from config.schema.regions import region_name
from config.schema.resource_ids import ResourceName, same_id

_ABOVE = ("Network Contributor", "Contributor", "Owner")
SUFFICIENT: Mapping[str, Collection[str]] = {
    "Network Contributor": {guid(name) for name in _ABOVE},
    "Private DNS Zone Contributor": {guid(name) for name in ("Private DNS Zone Contributor", *_ABOVE)},
    "Contributor": {guid(name) for name in ("Contributor", "Owner")},
}
_NO_POLICIES = "Disabled"


def network_objections(answer: Json, settings: Settings) -> Iterator[Objection]:
    """Yields problems of the network in `answer`, from Microsoft.Network/virtualNetworks."""
    network, properties = settings.network, answer["properties"]
    region = region_name(str(answer.get("location")))
    if region != settings.location:
        yield Objection(f"network.id is in {region}, but the cluster is in {settings.location}", (_LIST,))
    spaces = [IPv4Network(prefix) for prefix in properties["addressSpace"]["addressPrefixes"] if ":" not in prefix]
    for key, range_ in (("podRange", network.pod_range), ("serviceRange", network.service_range)):
        if clash := next((each for each in spaces if each.overlaps(IPv4Network(range_))), None):
            taken = [*spaces, *(each for name, each in ranges(network).items() if name != key)]
            free = elsewhere(IPv4Network(range_).prefixlen, taken)
            move = (set_command(("network", key), str(free)).text(settings.stack),) if free else ()
            yield Objection(f"network.{key} is {range_}, which overlaps {clash} of network.id", move)
    if clash := next((each for each in spaces for kept in RESERVED if each.overlaps(kept)), None):
        yield Objection(f"network.id contains addresses that AKS reserves: {clash}")
    yield from _node_subnet(properties, settings)
    if settings.entrances() and (servers := dns_servers(answer)):
        yield _custom_dns(servers, settings)
    if settings.entrances():
        yield from _endpoint_subnet(properties, settings)


def dns_servers(answer: Json) -> list[str]:
    """Returns a network's custom DNS servers; empty if it uses Azure's."""
    return list((answer["properties"].get("dhcpOptions") or {}).get("dnsServers") or ())


def _custom_dns(servers: Iterable[str], settings: Settings) -> Objection:
    """Returns a warning, not an error, because the program cannot query the custom DNS servers.

    If they do not resolve the private zones, nodes cannot find the API server, and the cluster's creation fails halfway
    (AKS's page on private clusters, "Hub and spoke with custom DNS" and the paragraph on custom DNS servers).
    """
    names = "the API server, registry and blobs" if settings.network.private else "the shared files' account"
    what = (
        f"network.id uses custom DNS servers ({', '.join(servers)}). These servers must be in a network that is linked "
        f"to the private zones of {names}, and must forward these zones to Azure's DNS at 168.63.129.16"
    )
    how = ["set network.zones to your zones that are linked to that network (docs/private-clusters.md)"]
    if settings.network.private and settings.network.zone("cluster", settings.location) is None:
        name = ZONE_NAMES["cluster"].format(region=settings.location)
        how.append(f"include {name}: otherwise AKS creates a zone that is linked only to network.id")
    return Objection(what, tuple(how), stops=False)


_LIST = "az network vnet list --output table    # networks and their regions"


def _find_subnet(properties: Json, key: str, id_: str | None, network_id: str | None) -> Iterator[Json | Objection]:
    subnet = next((each for each in properties.get("subnets", ()) if same_id(str(each.get("id")), id_ or "")), None)
    if subnet is None:
        place = ResourceName.of(network_id or "")
        where = f"--resource-group {place.group} --vnet-name {place.name}"
        list_ = f"az network vnet subnet list {where} --query [].id --output tsv"
        yield Objection(f"network.{key} is a subnet that network.id does not have", (list_,))
        return
    yield subnet["properties"]


def _node_subnet(properties: Json, settings: Settings) -> Iterator[Objection]:
    """Yields problems of the nodes' subnet, such as delegations (AKS's page on CNI networking)."""
    for subnet in _find_subnet(properties, "nodeSubnet", settings.network.node_subnet, settings.network.id):
        if isinstance(subnet, Objection):
            yield subnet
            return
        yield from _delegated(subnet, "nodeSubnet", settings.network.node_subnet)
        shared = settings.entrances() and same_id(
            settings.network.endpoint_subnet or "", settings.network.node_subnet or ""
        )
        needed = addresses_needed(settings) + (endpoint_addresses(settings) if shared else 0)
        yield from _too_small(subnet, "nodeSubnet", needed, _FEWER_NODES)
        if settings.network.nat_gateway and not subnet.get("natGateway"):
            what = "network.outbound is natGateway, but network.nodeSubnet has no NAT gateway"
            id_ = settings.network.node_subnet
            yield Objection(what, (f"az network vnet subnet update --ids {id_} --nat-gateway <name>",))
        elif settings.network.nat_gateway and settings.cluster.authorized_ip_ranges:
            yield _nat_gateway_addresses(str(subnet["natGateway"].get("id")))
        if settings.network.routed:
            yield from _routed(subnet, settings)
        if settings.network.private:
            yield from _policies(subnet, "nodeSubnet", settings.network.node_subnet)


def _routed(subnet: Json, settings: Settings) -> Iterator[Objection]:
    """Yields an error if there is no route table, or a warning if the authorized ranges may lack the firewall's
    address.

    https://learn.microsoft.com/azure/aks/egress-udr, https://learn.microsoft.com/azure/aks/limit-egress-traffic
    """
    if not subnet.get("routeTable"):
        what = "network.outbound is userDefinedRouting, but network.nodeSubnet has no route table"
        id_ = settings.network.node_subnet
        yield Objection(what, (f"az network vnet subnet update --ids {id_} --route-table <id>",))
    elif settings.cluster.authorized_ip_ranges:
        what = (
            "cluster.authorizedIpRanges must contain the public address of the firewall or gateway in the routes of "
            "network.nodeSubnet: nodes connect to the API server from that address, and AKS does not add it"
        )
        path = ("cluster", "authorizedIpRanges", len(settings.cluster.authorized_ip_ranges))
        yield Objection(what, (set_command(path, "<address>/32").text(settings.stack),), stops=False)


def route_table(answer: Json, settings: Settings) -> str | None:
    """Returns the id of the nodes' route table in `answer`, from Microsoft.Network/virtualNetworks, or None."""
    for subnet in _find_subnet(answer["properties"], "nodeSubnet", settings.network.node_subnet, settings.network.id):
        if not isinstance(subnet, Objection) and (table := subnet.get("routeTable")):
            return str(table["id"])
    return None


def route_objections(answer: Json, table: str) -> Iterator[Objection]:
    """Yields an error if the default route in `answer`, from Microsoft.Network/routeTables, is missing or wrong.

    AKS needs a route for 0.0.0.0/0 with a next hop in `_HOPS` (RouteTableInvalidNextHop,
    terraform-provider-azurerm#8609; Azure/AKS#1842), even if a gateway or virtual WAN announces such a route
    (MicrosoftDocs/azure-docs#108240).
    """
    place = ResourceName.of(table)
    name = f"the route table {place.name} of network.nodeSubnet"
    make = (
        f"az network route-table route create --resource-group {place.group} --route-table-name {place.name} "
        f"--name out --address-prefix {_ANYWHERE} --next-hop-type VirtualAppliance --next-hop-ip-address <firewall>"
    )
    routes = [each["properties"] for each in answer["properties"].get("routes") or ()]
    hop = next((str(each.get("nextHopType")) for each in routes if each.get("addressPrefix") == _ANYWHERE), None)
    if hop is None:
        yield Objection(f"{name} has no route for {_ANYWHERE}", (make,))
    elif hop not in _HOPS:
        yield Objection(f"{name} sends {_ANYWHERE} to {hop}, not to {' or '.join(_HOPS)}", (make,))


_ANYWHERE = "0.0.0.0/0"
_HOPS = ("VirtualAppliance", "VirtualNetworkGateway")


def _nat_gateway_addresses(gateway: str) -> Objection:
    """Returns a warning, not an error: Azure's answer lacks the gateway's addresses, which the ranges may contain."""
    what = (
        "cluster.authorizedIpRanges must contain the addresses of the NAT gateway of network.nodeSubnet: nodes connect "
        "to the API server from these addresses, and AKS adds only the addresses of its load balancer"
    )
    list_ = f"az network nat gateway show --ids {gateway} --query '[publicIpAddresses, publicIpPrefixes][][].id'"
    return Objection(what, (f"{list_}    # az network public-ip show --ids <id> --query ipAddress",), stops=False)


def _endpoint_subnet(properties: Json, settings: Settings) -> Iterator[Objection]:
    id_ = settings.network.endpoint_subnet
    for subnet in _find_subnet(properties, "endpointSubnet", id_, settings.network.id):
        if isinstance(subnet, Objection):
            yield subnet
            return
        yield from _delegated(subnet, "endpointSubnet", id_)
        if not same_id(id_ or "", settings.network.node_subnet or ""):
            yield from _policies(subnet, "endpointSubnet", id_)
            yield from _too_small(subnet, "endpointSubnet", endpoint_addresses(settings), _FEWER_ACCOUNTS)


def _delegated(subnet: Json, key: str, id_: str | None) -> Iterator[Objection]:
    services = [str(each["properties"]["serviceName"]) for each in subnet.get("delegations") or ()]
    if services:
        undo = f"az network vnet subnet update --ids {id_} --remove delegations    # if no service uses it"
        yield Objection(f"network.{key} is delegated to {', '.join(services)}", (undo,))


_FEWER_NODES = "set fewer nodes or a smaller autoscale.max in the stack file, or another network.nodeSubnet"
_FEWER_ACCOUNTS = "set fewer storage accounts in the stack file, or another network.endpointSubnet"


def _too_small(subnet: Json, key: str, needed: int, fix: str) -> Iterator[Objection]:
    """Yields an error if even an unused subnet is too small: Azure's answer does not show how many addresses are in
    use.
    """
    prefixes = subnet.get("addressPrefixes") or [subnet.get("addressPrefix")]
    available = sum(usable(IPv4Network(prefix)) for prefix in prefixes if prefix and ":" not in prefix)
    if available < needed:
        yield Objection(f"network.{key} has {available} usable addresses, but up to {needed} are needed", (fix,))


def _policies(subnet: Json, key: str, id_: str | None) -> Iterator[Objection]:
    """Yields a warning if the subnet applies network policies to private endpoints and has a network security group or
    a route table. It is only a warning, because their rules may allow the traffic of the nodes.

    The rules also apply to private endpoints, including the API server's endpoint (Azure's page on network policies for
    private endpoints). Such rules have disconnected nodes (MicrosoftDocs/azure-docs#101612).
    """
    policies = subnet.get("privateEndpointNetworkPolicies") or _NO_POLICIES
    rules = [name for name in ("networkSecurityGroup", "routeTable") if subnet.get(name)]
    if policies != _NO_POLICIES and rules:
        what = (
            f"network.{key} applies its {' and '.join(rules)} to private endpoints "
            f"(privateEndpointNetworkPolicies {policies}), so these rules must allow nodes to reach the endpoints"
        )
        off = f"az network vnet subnet update --ids {id_} --private-endpoint-network-policies {_NO_POLICIES}"
        yield Objection(what, (f"{off}    # or change the rules",), stops=False)


def link_objections(
    answer: Json, zone: str, network: str, *, wanted: bool, forwarded: bool = False
) -> Iterator[Objection]:
    """Yields an objection if the user's zone (`wanted`) is not linked to the network, or if another zone is linked that
    has the name of a zone that the stack will create.

    With custom DNS servers (`forwarded`), a missing link is only a warning: a link to the servers' network is enough. A
    network can have one zone per name (ARM's 400 "A virtual network cannot be linked to multiple zones with overlapping
    namespaces", MicrosoftDocs/azure-aks-docs#212). `answer` is from privateDnsZones/virtualNetworkLinks.
    """
    links = answer.get("value", ())
    linked = next((each for each in links if same_id(each["properties"]["virtualNetwork"]["id"], network)), None)
    place = ResourceName.of(zone)
    names = f"--resource-group {place.group} --zone-name {place.name}"
    if wanted and linked is None:
        make = f"az network private-dns link vnet create {names} --name nodes --registration-enabled false"
        what = f"{place.name} (network.zones) is not linked to network.id"
        yield Objection(what, (f"{make} --virtual-network {network}",), stops=not forwarded)
    elif linked and not wanted:
        what = f"network.id is already linked to another zone with the name {place.name}, in group {place.group}"
        undo = (
            f"az network private-dns link vnet delete {names} --name {linked.get('name')} --yes    # or delete the link"
        )
        yield Objection(what, (f"add {zone} to network.zones", undo))


def role_objections(answer: Json, role: str, principal: str, scope: str) -> Iterator[Objection]:
    """Yields an objection if the cluster's identity lacks a required role.

    `answer` is from roleAssignments with the filter `atScope() and assignedTo(...)`: the identity's assignments
    at that scope or above, including those of its groups. If it has other roles, the objection is only a warning:
    custom roles may be sufficient, but the answer lacks their permissions.
    """
    roles = (str(each["properties"]["roleDefinitionId"]) for each in answer.get("value", ()))
    found = {role.rpartition("/")[2].lower() for role in roles}
    if not found.isdisjoint(SUFFICIENT[role]):
        return
    grant = (
        f"az role assignment create --role '{role}' --assignee-object-id {principal} "
        f"--assignee-principal-type ServicePrincipal --scope {scope}"
    )
    what = f"cluster.identity does not have the role {role} on {ResourceName.of(scope).name}, which AKS requires"
    yield Objection(what, (f"{grant}    # may take an hour to take effect",), stops=not found)


def zones_named(answer: Json, names: Iterable[str]) -> list[str]:
    """Returns the ids of zones with these names in `answer`, a list of privateDnsZones."""
    wanted = set(names)
    return [str(each["id"]) for each in answer.get("value", ()) if str(each.get("name")).lower() in wanted]
