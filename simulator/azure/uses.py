"""Who uses a resource: what others are in, or point at, Azure does not delete before them."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Use
from simulator.azure.rooms import kinds


def of(world: World, resource: ResourceId, but: ResourceId | None = None) -> Iterator[Use]:
    """Every use that is made of a resource, by others than `but`."""
    for record in world.store.all():
        kind = kinds().get(record.id.type.lower())
        if kind and record.id != but:
            yield from (use for use in kind.uses(world, record) if use.of.lower() == resource.key)
