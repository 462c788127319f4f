"""Rules for the address ranges of a custom network, and the addresses that pools need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from itertools import combinations

from config.problems.errors import Problem
from config.problems.fixes import Fix, Path, remove_command, say, set_command
from config.schema.ip_ranges import elsewhere
from config.schema.models import StackFile
from config.schema.network import NetworkSettings, Use, layout, usable
from config.schema.pools import PoolSettings

_SURGE = 1
"""Nodes that AKS adds to a pool during an upgrade by default (AKS's page on rolling upgrades)."""
_API_SERVER = 1
"""The addresses of a private cluster's endpoint in the nodes' subnet (AKS's page on private clusters)."""
_NODE_PREFIX = 24
"""The prefix length of the range of pods that each node gets (AKS's overview of CNI Overlay)."""
_SERVICES_PREFIX = 13
"""The shortest prefix for services, which must have less than a /12 (AKS's overview of CNI Overlay)."""
_WIDTHS = range(24, 7, -1)
_ADDRESSES: Mapping[Use, int] = {"registry": 2}
"""The numbers of addresses of endpoints with more than one: a registry has a second address for its data."""

Ranges = Mapping[str, IPv4Network]


def most_nodes(stack: StackFile) -> int:
    """Returns the maximum number of nodes of all pools, including surge nodes.

    Excludes a future pool that replaces one of these pools, because only later settings contain it.
    """
    system = stack.cluster.system_pool.count + _SURGE
    return system + sum(pool.max_nodes + surge(pool) for pool in stack.gpu_pools().values())


def surge(pool: PoolSettings) -> int:
    """Returns the number of surge nodes of an upgrade; 0 with InfiniBand, because AKS upgrades such pools in place."""
    return 0 if pool.sku.infiniband and not pool.spot else _SURGE


def addresses_needed(stack: StackFile) -> int:
    return most_nodes(stack) + (_API_SERVER if stack.network.private else 0)


def endpoint_addresses(stack: StackFile) -> int:
    return sum(_ADDRESSES.get(use, 1) for use in stack.entrances())


def address_problems(stack: StackFile) -> Iterator[Problem]:
    network = stack.network
    if not network.own:
        return
    yield from _overlaps(network)
    yield from _services(network)
    yield from _pods(network, most_nodes(stack))
    if network.address_space:
        yield from _nodes(network, network.address_space, addresses_needed(stack))
        yield from _endpoints(network.address_space, endpoint_addresses(stack))


def _endpoints(address_space: str, needed: int) -> Iterator[Problem]:
    available = usable(layout(address_space).endpoints)
    if available < needed:
        what = f"has {available} addresses for private endpoints; registry and storage accounts need {needed}"
        how = say("use fewer storage accounts, or create the network yourself and set network.id")
        yield Problem(("network", "addressSpace"), what, "fewer storage accounts", how, shows_value=False)


def _nodes(network: NetworkSettings, address_space: str, needed: int) -> Iterator[Problem]:
    available = usable(layout(address_space).nodes)
    if available < needed:
        path = ("network", "addressSpace")
        what = f"is {address_space}: its half for nodes has {available} addresses, but the pools need {needed}"
        widths = [width for width in _WIDTHS if usable(layout(f"10.0.0.0/{width}").nodes) >= needed]
        yield Problem(path, what, _wider(widths), _moved(network, "addressSpace", widths))


def ranges(network: NetworkSettings) -> Ranges:
    space = {"addressSpace": IPv4Network(network.address_space)} if network.address_space else {}
    return {**space, "podRange": IPv4Network(network.pod_range), "serviceRange": IPv4Network(network.service_range)}


def _overlaps(network: NetworkSettings) -> Iterator[Problem]:
    for (one, mine), (other, theirs) in combinations(ranges(network).items(), 2):
        if mine.overlaps(theirs):
            what = f"is {theirs}, which overlaps network.{one} ({mine})"
            fix = _moved(network, other, range(theirs.prefixlen, _NODE_PREFIX + 1))
            yield Problem(("network", other), what, f"a private range outside network.{one}", fix)


def _services(network: NetworkSettings) -> Iterator[Problem]:
    range_ = IPv4Network(network.service_range)
    if range_.prefixlen < _SERVICES_PREFIX:
        path = ("network", "serviceRange")
        what = f"is {range_}, but AKS requires a range smaller than a /12 for services"
        yield Problem(
            path, what, f"a private range of /{_SERVICES_PREFIX} to /24", _moved(network, "serviceRange", [16])
        )


def _pods(network: NetworkSettings, nodes: int) -> Iterator[Problem]:
    range_ = IPv4Network(network.pod_range)
    capacity = 2 ** (_NODE_PREFIX - range_.prefixlen)
    if capacity < nodes:
        path = ("network", "podRange")
        what = f"is {range_}, with a /{_NODE_PREFIX} for each of {capacity} nodes, but the pools can have {nodes} nodes"
        widths = [width for width in _WIDTHS if 2 ** (_NODE_PREFIX - width) >= nodes]
        yield Problem(path, what, _wider(widths), _moved(network, "podRange", widths))


def _wider(widths: list[int]) -> str:
    return f"a /{widths[0]} or wider" if widths else "fewer nodes"


def _moved(network: NetworkSettings, key: str, widths: Iterable[int]) -> Fix:
    path: Path = ("network", key)
    taken = [range_ for other, range_ in ranges(network).items() if other != key]
    free = next((found for width in widths if (found := elsewhere(width, taken))), None)
    return set_command(path, str(free)) if free else remove_command(path)
