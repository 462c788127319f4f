"""Rules for the network's settings, also in combination with settings of cluster and registry."""

from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, either_by_hand, remove_command, say, set_command
from config.rules.addresses import address_problems
from config.schema.models import StackFile
from config.schema.names import MAX_DNS_LABEL
from config.schema.network import ZONE_NAMES, NetworkSettings, zone_use
from config.schema.regions import in_public_cloud
from config.schema.resource_ids import ResourceName, network_of, same_id

_CUSTOM_NETWORK = "a custom network: network.addressSpace or network.id"


def network_problems(stack: StackFile) -> Iterator[Problem]:
    network = stack.network
    yield from _conflicting_networks(network)
    yield from _subnets(stack)
    yield from _without_network(network)
    yield from _private(stack)
    yield from _zones(stack)
    yield from _names(stack)
    yield from address_problems(stack)


def _conflicting_networks(network: NetworkSettings) -> Iterator[Problem]:
    if network.address_space and network.id:
        path = ("network", "addressSpace")
        what = "creates a network, but network.id names an existing network"
        yield Problem(path, what, "one of the two", either_by_hand(path, "remove network.id"))
    if network.routed and not network.id:
        how = "set network.id to an existing network, and network.nodeSubnet to its subnet with a route table"
        what = "is userDefinedRouting, which needs an existing network: the stack does not create routes"
        allowed = "natGateway or loadBalancer, or userDefinedRouting with network.id"
        yield Problem(("network", "outbound"), what, allowed, say(how), shows_value=False, lacking=("network", "id"))
    if network.private and not network.own:
        path = ("network", "addressSpace")
        what = "is not set, but network.private needs a custom network"
        fix, lacking = by_hand(path), ("network", "id")
        yield Problem(path, what, _CUSTOM_NETWORK, fix, shows_value=False, lacking=lacking)


def _subnets(stack: StackFile) -> Iterator[Problem]:
    network = stack.network
    wanted = {"nodeSubnet": True, "endpointSubnet": bool(stack.entrances())}
    for (key, needed), given in zip(wanted.items(), (network.node_subnet, network.endpoint_subnet), strict=True):
        path: Path = ("network", key)
        if given and network.id is None:
            yield _subnet_without_network(network, path, given)
        elif given and network.id and not same_id(network_of(given), network.id):
            name = given.rpartition("/")[2]
            yield Problem(
                path,
                f"is not a subnet of network.id, {ResourceName.of(network.id).name}",
                "the id of a subnet of network.id",
                set_command(path, f"{network.id}/subnets/{name}"),
            )
        elif network.id and needed and not given:
            place = ResourceName.of(network.id)
            where = f"--resource-group {place.group} --vnet-name {place.name}"
            how = say(f"set it to an id from: az network vnet subnet list {where} --query [].id")
            yield Problem(path, "is not set", "the id of a subnet of network.id", how, shows_value=False)


def _subnet_without_network(network: NetworkSettings, path: Path, given: str) -> Problem:
    instead = either_by_hand(path, "set network.id instead of network.addressSpace")
    fix = instead if network.address_space else set_command(("network", "id"), network_of(given))
    what = "is a subnet of an existing network, but network.id is not set"
    return Problem(path, what, "no value, or a subnet of network.id", fix, lacking=("network", "id"))


def _without_network(network: NetworkSettings) -> Iterator[Problem]:
    if network.own or network.private:
        return
    for key, field in (("outbound", "outbound"), ("podRange", "pod_range"), ("serviceRange", "service_range")):
        if field in network.model_fields_set:
            path, what, allowed = (
                ("network", key),
                "is set, but nodes are in AKS's network",
                f"no value, or {_CUSTOM_NETWORK}",
            )
            fix = say("set network.addressSpace or network.id too")
            yield Problem(path, what, allowed, fix, lacking=("network",))


def _private(stack: StackFile) -> Iterator[Problem]:
    if not stack.network.private:
        return
    if stack.cluster.authorized_ip_ranges:
        path: Path = ("cluster", "authorizedIpRanges")
        what = "is only for a public API server, but network.private is true"  # AKS's page on private clusters
        fix = either_by_hand(path, "set network.private to false")
        yield Problem(path, what, "no value, or network.private false", fix)
    if stack.registry.sku != "Premium":
        path = ("registry", "sku")
        what = f"is {stack.registry.sku}, but only Premium supports private endpoints (network.private)"
        yield Problem(path, what, "Premium, or network.private false", by_hand(path))
    if not in_public_cloud(stack.location):
        path = ("network", "private")
        what = f"is true, but this program knows private DNS zones only of the public cloud, not of {stack.location}"
        yield Problem(path, what, "false, or a region of the public cloud", by_hand(path))


def _zones(stack: StackFile) -> Iterator[Problem]:
    network, seen = stack.network, set[str]()
    if network.zones and not (network.private or stack.entrances()):
        path: Path = ("network", "zones")
        what, lacking = (
            "is set, but no private endpoint uses these zones: network.private is false",
            ("network", "private"),
        )
        fix = either_by_hand(path, "set network.private to true")
        yield Problem(path, what, "no value, or network.private true", fix, lacking=lacking)
        return
    names = ", ".join(pattern.format(region=stack.location) for pattern in ZONE_NAMES.values())
    for at, zone in enumerate(network.zones):
        path, use, name = ("network", "zones", at), zone_use(zone, stack.location), ResourceName.of(zone).name
        if use is None:
            what = f"is {name}, a zone that a stack in {stack.location} does not use"
            yield Problem(path, what, names, remove_command(path))
        elif use in seen:
            yield Problem(
                path, f"is {name}, a second zone for the same names", "one zone for each name", remove_command(path)
            )
        seen |= {use} if use else set()


def _names(stack: StackFile) -> Iterator[Problem]:
    """Yields names of groups, networks and subnets that are too long (CNI Overlay overview, "Limitations")."""
    network, group = stack.network, stack.cluster.resource_group
    allowed = f"at most {MAX_DNS_LABEL} characters, because labels of nodes contain the name"
    if network.address_space and group and len(group) > MAX_DNS_LABEL:
        path: Path = ("cluster", "resourceGroup")
        what = f"is {group!r}, which contains the nodes' network and has {len(group)} characters"
        yield Problem(path, what, allowed, set_command(path, group[:MAX_DNS_LABEL].strip("-.")))
    named = [("nodeSubnet", (network.node_subnet or "").rpartition("/")[2])]
    if network.id:
        place = ResourceName.of(network.id)
        named = [("id", place.group), ("id", place.name), *named]
    for key, name in named:
        if len(name) > MAX_DNS_LABEL:
            what = f"has the name {name!r}, which has {len(name)} characters"
            yield Problem(("network", key), what, allowed, say("use a network with shorter names"))
