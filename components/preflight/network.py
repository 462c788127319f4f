"""Checks an existing network, its zones and its roles in Azure, before the cluster exists."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

from pulumi_azure_native import managedidentity

from components.azure.roles import subscription_id
from components.preflight.arm import Arm, Json, Question, Unread, answers_at, look_up
from components.preflight.existing import get_if_exists
from config.problems.fixes import remove_command
from config.rules.network_answers import (
    dns_servers,
    link_objections,
    network_objections,
    role_objections,
    route_objections,
    route_table,
    zones_named,
)
from config.rules.subscription import Objection
from config.schema.models import Settings
from config.schema.network import ZONE_NAMES, Use, zone_use
from config.schema.resource_ids import ResourceName, group_id

_NETWORK_API, _ZONE_API, _ROLE_API = "2024-05-01", "2024-06-01", "2022-04-01"


def groups_for_roles(settings: Settings) -> list[str]:
    if settings.cluster.identity:
        return []
    zone = settings.network.zone("cluster", settings.location)
    return list(dict.fromkeys(group_id(each) for each in (settings.network.id, zone) if each))


def objections(settings: Settings, arm: Arm | Unread) -> Iterator[Objection]:
    network = settings.network.id
    found = _found(network, arm) if network and (settings.network.routed or settings.network.zones) else {}
    asked = [*_about_the_network(settings), *_about_roles(settings)]
    asked += _about_zones(settings, forwarded=bool(found and dns_servers(found)))
    if settings.network.routed and found and (table := route_table(found, settings)):
        judge = partial(route_objections, table=table)
        asked.append(Question(f"the route table {ResourceName.of(table).name}", (network_path(table),), judge))
    if network:
        asked += _about_other_zones(settings, network, arm)
    if asked:
        yield from look_up(asked, arm)
    yield from _zones_elsewhere(settings)


def _found(network: str, arm: Arm | Unread) -> Json:
    """Returns the network from Azure, or {} if it cannot be read. Another check reports an unreadable network."""
    path = network_path(network)
    answer = answers_at(arm, [path])[path]
    return {} if isinstance(answer, Unread) else answer


def _about_the_network(settings: Settings) -> Iterator[Question]:
    if id_ := settings.network.id:
        yield Question(
            f"the network {ResourceName.of(id_).name}",
            (network_path(id_),),
            lambda answer: network_objections(answer, settings),
            absent=f"network.id does not exist in Azure: {id_}",
            list_="az network vnet list --query [].id --output tsv",
        )


def network_path(network: str) -> str:
    """Returns the ARM path of a network in any subscription. The SDK's functions only read the current one."""
    return f"{network}?api-version={_NETWORK_API}"


def _about_roles(settings: Settings) -> Iterator[Question]:
    """Yields questions about the roles of the user's identity. The stack assigns the roles of its own identity."""
    zone = settings.network.zone("cluster", settings.location)
    reserved = sorted({pool.capacity_reservation_group or "" for pool in settings.gpu_pools().values()})
    needed = [("Network Contributor", settings.network.id), ("Private DNS Zone Contributor", zone)]
    needed += [("Contributor", group) for group in reserved]
    principal = _principal(settings) if any(scope for _, scope in needed) else None
    for role, scope in needed if principal else ():
        if scope:
            chosen = quote(f"atScope() and assignedTo('{principal}')")
            path = f"{scope}/providers/Microsoft.Authorization/roleAssignments?api-version={_ROLE_API}&$filter={chosen}"
            judge = partial(role_objections, role=role, principal=str(principal), scope=scope)
            yield Question(f"whether cluster.identity has the role {role}", (path,), judge)


def _principal(settings: Settings) -> str | None:
    """Returns the principal of `cluster.identity`, or None. components/azure/reservations.py reports a missing one."""
    if settings.cluster.identity is None:
        return None
    place = ResourceName.of(settings.cluster.identity)
    get = managedidentity.get_user_assigned_identity
    found = get_if_exists(lambda: get(resource_name=place.name, resource_group_name=place.group))
    return found.principal_id if found else None


def _about_zones(settings: Settings, *, forwarded: bool) -> Iterator[Question]:
    """Yields questions about the user's zones.

    AKS links the API server's zone, the stack links zones to its new network, and the user must link all others.
    """
    cluster = settings.network.zone("cluster", settings.location)
    for zone in settings.network.zones:
        links = f"{zone}/virtualNetworkLinks?api-version={_ZONE_API}"
        network = None if zone == cluster else settings.network.id
        yield Question(
            f"the zone {ResourceName.of(zone).name}",
            (links,),
            partial(link_objections, zone=zone, network=network, wanted=True, forwarded=forwarded)
            if network
            else lambda _: (),
            absent=f"network.zones has a zone that does not exist in Azure: {zone}",
            list_="az network private-dns zone list --query [].id --output tsv",
        )


def _zones_elsewhere(settings: Settings) -> Iterator[Objection]:
    """Yields objections to zones in another subscription, which azure-native cannot link to the stack's new network.

    AKS links the API server's zone in any subscription. The last zone comes first, because its removal does not
    renumber the others.
    """
    if settings.network.address_space is None or not settings.network.zones:
        return
    own = f"/subscriptions/{subscription_id()}/"
    for at, zone in reversed([*enumerate(settings.network.zones)]):
        if zone_use(zone, settings.location) in settings.entrances() and not zone.lower().startswith(own.lower()):
            name = ResourceName.of(zone).name
            what = (
                f"network.zones has {name} in another subscription, so this stack cannot link the zone to its network"
            )
            without = remove_command(("network", "zones", at)).text(settings.stack)
            there = "or set network.id to an existing network that is linked to that zone (docs/private-clusters.md)"
            yield Objection(what, (f"{without}    # the stack creates a zone with that name", there))


def _about_other_zones(settings: Settings, network: str, arm: Arm | Unread) -> Iterator[Question]:
    """Yields questions about existing zones with the names of zones that the stack will create.

    Covers only the network's subscription, because Azure cannot list a network's zones in other subscriptions.
    """
    region, names = settings.location, [ZONE_NAMES[use] for use in made_zones(settings)]
    subscription = "/".join(network.split("/")[:3])
    path = f"{subscription}/providers/Microsoft.Network/privateDnsZones?api-version={_ZONE_API}"
    if not names:
        return
    answer = answers_at(arm, [path])[path]
    if isinstance(answer, Unread):
        yield Question(f"private DNS zones of {region}", (path,), lambda _: ())  # reports unreadable zones
        return
    for zone in zones_named(answer, names):
        judge = partial(link_objections, zone=zone, network=network, wanted=False)
        yield Question(f"the zone {zone}", (f"{zone}/virtualNetworkLinks?api-version={_ZONE_API}",), judge)


def made_zones(settings: Settings) -> list[Use]:
    uses = dict.fromkeys(settings.entrances())
    return [use for use in uses if settings.network.zone(use, settings.location) is None]
