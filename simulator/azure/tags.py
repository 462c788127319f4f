"""Limits of resource tags: number, names and values.

Limits: https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations. The lower
limit of DNS zones (15 tags) is not simulated. Sources of error texts: for reserved characters, Microsoft's tutorial
"Write Azure CLI commands for both Bash and PowerShell"; for lengths, scripts that repeat Azure's text. The text for too
many tags is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.azure.errors import Problem

_MOST = 50
_VALUE_MAXIMUM = 256
_NAME_MAXIMUM = 512
_NAME_MAXIMUM_OF: Mapping[str, int] = {"Microsoft.Storage/storageAccounts": 128}
_RESERVED = re.compile(r"[<>%&\\?/\x00-\x1f\x7f]")


def problems(resource_type: str, path: str, tags: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields errors in the tags (of a resource or of a pool's machines) at `path`. The schema checks value types."""
    if len(tags) > _MOST:
        text = f"The resource has {len(tags)} tags. The maximum number of tags on a resource is {_MOST}."
        yield Problem(path, text, "InvalidTagCount")
    if reserved := [name for name in tags if _RESERVED.search(name)]:
        text = f"The tag names '{', '.join(reserved)}' have reserved characters '<,>,%,&,\\,?,/' or control characters."
        yield Problem(path, text, "InvalidTagNameCharacters")
    most = _NAME_MAXIMUM_OF.get(resource_type, _NAME_MAXIMUM)
    if long := [name for name in tags if len(name) > most]:
        yield Problem(path, _too_large("key", "name", long, most), "InvalidTagName")
    if long := [value for value in tags.values() if isinstance(value, str) and len(value) > _VALUE_MAXIMUM]:
        yield Problem(path, _too_large("value", "value", long, _VALUE_MAXIMUM), "InvalidTagValueLength")


def _too_large(what: str, part: str, found: list[str], most: int) -> str:
    return (
        f"Tag {what} too large. Following tag {part} '{', '.join(found)}' exceeded the maximum length. "
        f"Maximum allowed length for tag {part} - '{most}' characters."
    )
