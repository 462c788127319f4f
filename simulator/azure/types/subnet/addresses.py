"""The addresses of a subnet: Azure keeps the first four and the last (its page on virtual networks, FAQ)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from simulator.azure import uses
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.store import Record
from simulator.azure.types.subnet.rules import prefix

_FIRST, _KEPT = 4, 5


def size(subnet: Record) -> int:
    """How many there are to give away."""
    return max(0, prefix(subnet.properties).num_addresses - _KEPT)


def free(world: World, subnet: Record, but: ResourceId | None = None) -> int:
    """How many nobody has; those of `but` count as free."""
    return size(subnet) - sum(use.addresses for use in uses.of(world, subnet.id, but))


def take(world: World, subnet: Record, number: int = 1) -> list[str]:
    """The first ones that nobody has. Raises ArmError where there are too few (text: Azure/AKS#2119)."""
    if free(world, subnet) < number:
        message = (
            f"Subnet {subnet.id.name} with address prefix {prefix(subnet.properties)} does not have enough capacity "
            f"for {number} IP addresses."
        )
        raise bad_request(message, code="SubnetIsFull")
    taken = {use.address for use in uses.of(world, subnet.id)}
    return list(islice((each for each in _all(subnet) if each not in taken), number))


def _all(subnet: Record) -> Iterator[str]:
    found = prefix(subnet.properties)
    return (str(found[index]) for index in range(_FIRST, found.num_addresses - 1))
