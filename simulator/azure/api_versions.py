"""Checks that API versions are not older than Resource Manager's first or newer than the type's newest."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from config.data import data
from simulator.azure.errors import bad_request
from simulator.azure.ids import GROUP_TYPE

_FIRST = "2014-04-01"
_VERSION = re.compile(r"(\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01]))(-\w+)?")
_OWN = "Microsoft.Resources"
"""Types in this namespace report an invalid version differently."""


def newest(resource_type: str) -> str:
    known, name = _known(), resource_type.lower()
    while name not in known and "/" in name:
        name = name.rpartition("/")[0]
    return known[name]


def check(version: str, resource_type: str, regions: tuple[str, ...], location: str = "") -> None:
    """Raises ArmError (400) for an invalid version or an unknown location.

    Error texts: Azure/azure-cli#28368, #28038, #10100.
    """
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise bad_request(message, code="MissingApiVersionParameter")
    found = _VERSION.fullmatch(version)
    latest = newest(resource_type)
    if found and _FIRST <= found[1] <= latest[:10] and (not location or location.lower() in regions):
        return
    if resource_type.partition("/")[0] == _OWN or resource_type == GROUP_TYPE:
        message = f"The api-version '{version}' is invalid. The supported versions are '{latest}' and older ones."
        raise bad_request(message, code="InvalidApiVersionParameter")
    message = (
        f"No registered resource provider found for location '{location}' and API version '{version}' for type "
        f"'{resource_type.partition('/')[2]}'. The supported api-versions are '{latest}' and older ones. "
        f"The supported locations are '{', '.join(regions)}'."
    )
    raise bad_request(message, code="NoRegisteredProviderFound")


@functools.cache
def _known() -> dict[str, str]:
    found: dict[str, str] = data.parsed(Path(__file__).with_name("api_versions.yaml").read_text())
    return {name.lower(): version for name, version in found.items()}
