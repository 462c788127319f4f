"""Azure's built-in roles, from `azure_roles.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from config.data import data


@functools.cache
def _guids() -> Mapping[str, str]:
    found: Mapping[str, str] = data.read("azure_roles.yaml")
    return found


def guid(name: str) -> str:
    """Returns the GUID of a role definition; raises KeyError for an unknown role."""
    return _guids()[name]


def name_of(role: str) -> str:
    return next(name for name, found in _guids().items() if found == role)
