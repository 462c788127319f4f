"""Name resolution, in a virtual network and outside all networks.

It follows Azure's DNS server (168.63.129.16). Sources: Azure's pages on the DNS of private endpoints, on links of
zones, and "Fallback to internet for Azure Private DNS zones".

- A zone linked to the network answers for all names below the zone. Names without a record do not exist (NXDOMAIN),
  unless the link redirects them to public DNS (`NxDomainRedirect`).
- In public DNS, the name of a service with a private endpoint is an alias: `x.blob.core.windows.net` leads to
  `x.privatelink.blob.core.windows.net`. If a zone for the alias is linked, the zone answers. Else, public DNS
  returns the service's public address, where the service may reject requests.
- A private cluster has no public address. The private name is only in the private zone. The public name, unless it is
  disabled, is in public DNS with the private address, which is not reachable from outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.azure import domains
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import ZoneRecord
from simulator.azure.resource_types import known
from simulator.azure.store import Record
from simulator.azure.types.private_endpoint import rules as endpoints

LINKS = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
_PRIVATE = "privatelink."
_ALIASED = (domains.REGISTRIES, domains.BLOBS, domains.DFS, domains.FILES)
"""Domains in which the name of a service with a private endpoint is an alias."""


@dataclass(frozen=True)
class Answer:
    """The DNS answer for an existing name."""

    aliases: tuple[str, ...] = ()
    """The CNAMEs on the way to the address."""
    address: str = ""
    """The address in a virtual network. Empty for public addresses, which are not simulated."""
    of: ResourceId | None = None
    """The resource at the address, or None for a host outside Azure."""


def resolve(world: World, name: str, network: ResourceId | None = None) -> Answer | None:
    """Resolves a name in `network` (None: outside all networks). Returns None if the name does not exist."""
    fqdn = name.lower().rstrip(".")
    decided, answer = _in_zones(world, fqdn, network)
    if decided:
        return answer
    host = _host(world, fqdn)
    if host is None:
        return None if any(fqdn.endswith(f".{domain}") for domain in domains.ALL) else Answer()
    for alias in host.aliases:
        decided, answer = _in_zones(world, alias, network)
        if decided:
            return replace(answer, aliases=host.aliases) if answer else None
    return host


def records(world: World, zone: ResourceId) -> list[ZoneRecord]:
    return [each for kind, record in known(world) for each in kind.zone_records(world, record) if each.zone == zone]


def private_name(name: str, zone: str) -> str:
    """Returns a public name relative to its `privatelink` zone, or an empty string for another zone."""
    domain = zone.lower().removeprefix(_PRIVATE)
    return name.removesuffix(f".{domain}") if zone.lower().startswith(_PRIVATE) and name.endswith(f".{domain}") else ""


def _in_zones(world: World, name: str, network: ResourceId | None) -> tuple[bool, Answer | None]:
    """Returns whether a linked zone answers, and the answer (None: the name does not exist)."""
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
    key = network.key if network else ""
    return [
        (link.id.parent, link)
        for link in world.store.all(LINKS)
        if link.properties["virtualNetwork"]["id"].lower() == key
    ]


def _host(world: World, name: str) -> Answer | None:
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
