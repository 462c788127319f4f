"""The resource types that the simulated Resource Manager serves: every folder of `types/` is the room of one.

A room has `schema.yaml`, the type's shape and what others make of it (`schema.py`), and `rules.py`, whose KIND is its
rules and its life (`kind.py`). Nothing else lists the types.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping

from simulator.azure.kind import Kind
from simulator.azure.schema import rooms


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """By the name of the type in lower case. Rooms are imported at the first call, since they use each other."""
    package = f"{__package__}.types"
    return {
        schema.type.lower(): importlib.import_module(f"{package}.{room}.rules").KIND for room, schema in rooms().items()
    }
