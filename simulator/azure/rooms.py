"""The resource types that the simulated Resource Manager serves: every folder of `types/` is the room of one.

A room has `schema.yaml`, the type's shape and what others make of it (`schema.py`), and `rules.py`, whose KIND is its
rules and its life (`kind.py`). Nothing else lists the types.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping

from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, Use
from simulator.azure.schema import rooms
from simulator.azure.store import Record


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """By the name of the type in lower case. Rooms are imported at the first call, since they use each other."""
    package = f"{__package__}.types"
    return {
        schema.type.lower(): importlib.import_module(f"{package}.{room}.rules").KIND for room, schema in rooms().items()
    }


def known(world: World) -> Iterator[tuple[Kind, Record]]:
    """All resources of the types, each with its own."""
    for record in world.store.all():
        if kind := kinds().get(record.id.type.lower()):
            yield kind, record


def uses(world: World, resource: ResourceId, but: ResourceId | None = None) -> Iterator[Use]:
    """Every use that is made of a resource, by others than `but`: Azure does not delete it before them."""
    for kind, record in known(world):
        if record.id != but:
            yield from (use for use in kind.uses(world, record) if use.of.lower() == resource.key)
