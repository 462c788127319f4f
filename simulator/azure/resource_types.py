"""The resource types of simulated Resource Manager. Each folder of `types/` is the package of one type.

In a package, `schema.yaml` has the type's shape and SDK names (`schema.py`). KIND in `rules.py` has the type's rules
and operations (`kind.py`). No other list of types exists.
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
    """Returns all types by lower-case name. Imports the packages only when called, because they import each other."""
    modules = {name: importlib.import_module(f"{__package__}.types.{name}.rules") for name in packages()}
    return {schema.type.lower(): modules[name].KIND for name, schema in packages().items()}


def known(world: World) -> Iterator[tuple[Kind, Record]]:
    for record in world.store.all():
        if kind := kinds().get(record.id.type.lower()):
            yield kind, record


def uses(world: World, resource: ResourceId, but: ResourceId | None = None) -> Iterator[Use]:
    """Yields the uses of a resource, except uses by the resource `but`."""
    for kind, record in known(world):
        if record.id != but:
            yield from (use for use in kind.uses(world, record) if use.of.lower() == resource.key)
