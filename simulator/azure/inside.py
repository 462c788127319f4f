"""Reachability of hosts from a virtual network, and from outside all networks.

A private address is reachable only from its own network: peerings, VPN and gateways are not simulated. Error texts are
those of Go's resolver and dialer, because kubectl, Helm and the plugins show them.
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
from simulator.azure.types.virtual_network.rules import TYPE as NETWORKS

HTTPS = 443


class Unreached(OSError):
    """The host is not reachable. The message is that of a client's resolver or dialer."""


@dataclass(frozen=True)
class Reached:
    """The service to which a host name leads."""

    service: ResourceId | None = None
    """The Azure resource, or None outside Azure."""
    private: bool = False


def reach(world: World, host: str, port: int, network: ResourceId | None) -> Reached:
    """Returns the service that a client in `network` (None: outside all networks) reaches. Raises Unreached."""
    answer = names.resolve(world, host, network)
    if answer is None:
        raise Unreached(f"dial tcp: lookup {host}: no such host")
    if answer.address and (network is None or not answer.of or not _is_in(world, network, answer.of, answer.address)):
        raise Unreached(f"dial tcp {answer.address}:{port}: i/o timeout")
    return Reached(answer.of, bool(answer.address))


def served_at(world: World, service: ResourceId, port: int) -> int:
    found = _https(world, service) if port == HTTPS else None
    if found is None:
        raise Unreached(f"dial tcp: {service.name}:{port}: connect: connection refused")
    return found


def network_of(world: World, cluster: ResourceId) -> ResourceId | None:
    """Returns the virtual network of a cluster's nodes, or None if AKS manages the network."""
    subnets = (pool.properties.get("vnetSubnetID") for pool in of_cluster(world, cluster))
    return next((parse_id(subnet).parent for subnet in subnets if subnet), None)


def label(network: ResourceId) -> str:
    """Returns a network's unique name for the proxy. Group names cannot contain the separator `+`."""
    return f"{network.group}+{network.name}"


def find(records: Iterable[Record], text: str) -> list[ResourceId]:
    """Returns the networks whose label or name is `text`, or if none matches, the networks in the group `text`."""
    networks = [record.id for record in records if record.id.type.lower() == NETWORKS.lower()]
    wanted = text.lower()
    named = [each for each in networks if wanted in (label(each).lower(), each.name.lower())]
    return named or [each for each in networks if (each.group or "").lower() == wanted]


def _is_in(world: World, network: ResourceId, service: ResourceId, address: str) -> bool:
    if service.type.lower() == CLUSTERS.lower():
        return network_of(world, service) == network
    for endpoint in endpoints.of_service(world, service):
        subnet = parse_id(endpoint.properties["subnet"]["id"])
        if address in endpoint.facts["addresses"] and subnet.parent == network:
            return True
    return False


def _https(world: World, service: ResourceId) -> int | None:
    """Returns the port of the service's server, or None if no server runs (file storage, a starting cluster)."""
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
