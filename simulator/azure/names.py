"""What a name resolves to, for a machine in a virtual network and for everybody else.

As Azure's own DNS server (168.63.129.16) answers in a network, by Azure's pages on private endpoints' DNS, on links of
zones, and "Fallback to internet for Azure Private DNS zones":

- A zone that is linked to the network answers for all names below its own. What it does not have does not exist
  (NXDOMAIN), unless the link lets such answers go to public DNS (`NxDomainRedirect`).
- A service with a private endpoint has, in public DNS, an alias: `x.blob.core.windows.net` is
  `x.privatelink.blob.core.windows.net`. So a zone of that name answers where it is linked; elsewhere public DNS does,
  with the service's public address, at which it may refuse.
- A private cluster has no public address. Its private name is in its zone alone. Its public name, unless turned off,
  is in public DNS with the private address, which leads nowhere from outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.azure import domains
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import ZoneRecord
from simulator.azure.rooms import known
from simulator.azure.store import Record
from simulator.azure.types.private_endpoint import rules as endpoints

LINKS = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
_PRIVATE = "privatelink."
_ALIASED = (domains.REGISTRIES, domains.BLOBS, domains.DFS, domains.FILES)
"""Domains whose names are aliases once they have a private endpoint."""


@dataclass(frozen=True)
class Answer:
    """What DNS says of a name that exists."""

    aliases: tuple[str, ...] = ()
    """Which it goes through."""
    address: str = ""
    """In a virtual network; empty for a public one, of which none is simulated."""
    of: ResourceId | None = None
    """The resource that is there; None for the world outside of Azure."""


def resolve(world: World, name: str, network: ResourceId | None = None) -> Answer | None:
    """The answer in a virtual network, or outside of all; None where the name does not exist (NXDOMAIN)."""
    asked = name.lower().rstrip(".")
    decided, answer = _in_zones(world, asked, network)
    if decided:
        return answer
    host = _host(world, asked)
    if host is None:
        return None if any(asked.endswith(f".{domain}") for domain in domains.ALL) else Answer()
    for alias in host.aliases:
        decided, answer = _in_zones(world, alias, network)
        if decided:
            return replace(answer, aliases=host.aliases) if answer else None
    return host


def records(world: World, zone: ResourceId) -> list[ZoneRecord]:
    """What resources have written in a zone."""
    return [each for kind, record in known(world) for each in kind.zone_records(world, record) if each.zone == zone]


def private_name(name: str, zone: str) -> str:
    """What a public name is called in the zone that is for it; empty in another zone."""
    domain = zone.lower().removeprefix(_PRIVATE)
    return name.removesuffix(f".{domain}") if zone.lower().startswith(_PRIVATE) and name.endswith(f".{domain}") else ""


def _in_zones(world: World, name: str, network: ResourceId | None) -> tuple[bool, Answer | None]:
    """Whether a zone that is linked decides, and its answer. The zone that is nearest to the name is asked."""
    fitting = [(zone, link) for zone, link in _linked(world, network) if name.endswith(f".{zone.name.lower()}")]
    if not fitting:
        return False, None
    zone, link = max(fitting, key=lambda each: len(each[0].name))
    own = name.removesuffix(f".{zone.name.lower()}")
    for found in records(world, zone):
        if found.name == own:
            return True, Answer((), found.address, found.of)
    private = zone.name.lower().startswith(_PRIVATE)
    return not (private and link.properties["resolutionPolicy"] == "NxDomainRedirect"), None


def _linked(world: World, network: ResourceId | None) -> list[tuple[ResourceId, Record]]:
    """The zones that are linked to a network, each with the link."""
    key = network.key if network else ""
    return [
        (link.id.parent, link)
        for link in world.store.all(LINKS)
        if link.id.parent and link.properties["virtualNetwork"]["id"].lower() == key
    ]


def _host(world: World, name: str) -> Answer | None:
    """What public DNS has for a name of Azure's."""
    plain = name.replace(f".{_PRIVATE}", ".", 1)
    for kind, record in known(world):
        hosts = kind.hosts(world, record)
        if name in hosts:
            return Answer((), hosts[name], record.id)
        if any(plain in names for names in kind.names(world, record).values()):
            aliases = (_alias(plain),) if endpoints.of_service(world, record.id) else ()
            if name == plain:
                return Answer(aliases, of=record.id)
            return Answer(of=record.id) if name in aliases else None
    return None


def _alias(name: str) -> str:
    domain = next(domain for domain in _ALIASED if name.endswith(f".{domain}"))
    return f"{name.removesuffix(domain)}{_PRIVATE}{domain}"
