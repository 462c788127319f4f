"""Where a name leads from inside a virtual network, and from outside of all.

What a name resolves to, `names.py` says. What lies behind an address is reached from the network that the address is
in, and from no other: peerings, VPN and gateways are not simulated. Words are those of Go's resolver and dialler, which
kubectl, Helm and the plugins show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from simulator.azure import names
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.store import Record
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.container_registry.rules import TYPE as REGISTRIES
from simulator.azure.types.managed_cluster.rules import TYPE as CLUSTERS
from simulator.azure.types.private_endpoint import rules as endpoints
from simulator.azure.types.storage_account.rules import TYPE as ACCOUNTS
from simulator.azure.types.storage_account.rules import has_blobs
from simulator.azure.types.subnet.rules import network_id
from simulator.azure.types.virtual_network.rules import TYPE as NETWORKS

HTTPS = 443


class Unreached(OSError):
    """Nothing is reached; the message says why, as a client's resolver or dialler would."""


@dataclass(frozen=True)
class Reached:
    """What a name leads to."""

    service: ResourceId | None = None
    """None for the world outside of Azure."""
    private: bool = False
    """Whether at an address in the virtual network."""


def reach(world: World, host: str, port: int, network: ResourceId | None) -> Reached:
    """From inside a network, or from outside of all (None). Raises Unreached."""
    answer = names.resolve(world, host, network)
    if answer is None:
        raise Unreached(f"dial tcp: lookup {host}: no such host")
    if answer.address and (network is None or not answer.of or not _is_in(world, network, answer.of, answer.address)):
        raise Unreached(f"dial tcp {answer.address}:{port}: i/o timeout")
    return Reached(answer.of, bool(answer.address))


def served_at(world: World, service: ResourceId, port: int) -> int:
    """The port of 127.0.0.1 at which the simulator serves a port of a service. Raises Unreached."""
    found = _https(world, service) if port == HTTPS else None
    if found is None:
        raise Unreached(f"dial tcp: {service.name}:{port}: connect: connection refused")
    return found


def network_of(world: World, cluster: ResourceId) -> ResourceId | None:
    """The network of one's own that a cluster's nodes are in; None for AKS's own, where no zone is linked."""
    subnets = (pool.properties.get("vnetSubnetID") for pool in of_cluster(world, cluster))
    return next((network_id(parse_id(subnet)) for subnet in subnets if subnet), None)


def label(network: ResourceId) -> str:
    """What a network is called by whoever enters it: no other has this name. No group has a `+` in its own."""
    return f"{network.group}+{network.name}"


def find(records: Iterable[Record], text: str) -> list[ResourceId]:
    """The networks that are meant: by label or name, or those of the resource group."""
    networks = [record.id for record in records if record.id.type.lower() == NETWORKS.lower()]
    wanted = text.lower()
    named = [each for each in networks if wanted in (label(each).lower(), each.name.lower())]
    return named or [each for each in networks if (each.group or "").lower() == wanted]


def _is_in(world: World, network: ResourceId, service: ResourceId, address: str) -> bool:
    """Whether the address of a service is in a network."""
    if service.type.lower() == CLUSTERS.lower():
        return network_of(world, service) == network
    for endpoint in endpoints.of_service(world, service):
        subnet = parse_id(endpoint.properties["subnet"]["id"])
        if address in endpoint.facts["addresses"] and network_id(subnet) == network:
            return True
    return False


def _https(world: World, service: ResourceId) -> int | None:
    """None for what nothing serves: accounts of files, and a cluster that starts."""
    if service.type.lower() == ACCOUNTS.lower():
        account = world.store.get(service)
        return urlsplit(world.blobs.endpoint).port if account and has_blobs(account) else None
    if service.type.lower() == CLUSTERS.lower():
        try:
            return world.backend.api_port(service.text)
        except KeyError:
            return None
    if service.type.lower() == REGISTRIES.lower():
        return world.registries.port
    return None
