"""Simulated Resource Manager's resource types. Each folder of `types/` is a type's package.

A package has `schema.yaml`, the type's shape and SDK names (`schema.py`), and `rules.py` with KIND, its rules and
operations (`kind.py`). No other list of types exists.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping

from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind, Use
from simulator.azure.schema import packages
from simulator.azure.store import Record


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """Returns all types by lower-case name. The first call imports the packages, because they import each other."""
    modules = {name: importlib.import_module(f"{__package__}.types.{name}.rules") for name in packages()}
    return {schema.type.lower(): modules[name].KIND for name, schema in packages().items()}


def known(world: World) -> Iterator[tuple[Kind, Record]]:
    for record in world.store.all():
        if kind := kinds().get(record.id.type.lower()):
            yield kind, record


def uses(world: World, resource: ResourceId, but: ResourceId | None = None) -> Iterator[Use]:
    """Yields uses of a resource by others than `but`. Azure does not delete a used resource."""
    for kind, record in known(world):
        if record.id != but:
            yield from (use for use in kind.uses(world, record) if use.of.lower() == resource.key)
