"""Image references: from each image's own registry, or all from the mirror that `images.registry` names.

A mirror keeps each image's path: nvcr.io/nvidia/driver becomes <registry>/nvidia/driver. Images of `docker/` come from
the stack's registry, with a hash of their content as tag.
"""

from __future__ import annotations

from typing import Any

from config.data.chart_values import own_keys
from config.data.content_tags import content_tag
from config.data.versions import versions

_PLACES = ("repository", "image_registry")
_REGISTRY = "registry"
_REFERENCE = "image"


def mirrored(place: str, registry: str | None) -> str:
    if registry is None:
        return place
    _, slash, path = place.partition("/")
    return f"{registry.rstrip('/')}{slash}{path}"


def repository(name: str, registry: str | None) -> str:
    return mirrored(versions().images[name].repository, registry)


def reference(name: str, registry: str | None) -> str:
    return f"{repository(name, registry)}/{name}:{versions().images[name].version}"


def own(name: str, *, login_server: str, mirror: str | None) -> str:
    """Returns the full reference of a pinned image, or of an image of `docker/`.

    `login_server` is the host name of the stack's registry. Raises UnknownImage.
    """
    if name in versions().images:
        return reference(name, mirror)
    place = login_server if mirror is None else mirror.rstrip("/")
    return f"{place}/{name}:{content_tag(name)}"


def chart_values(chart: str, registry: str | None) -> dict[str, Any]:
    """Returns values that make a chart pull images from the mirror, with keys from the chart's keys file, or {}."""
    values: dict[str, Any] = {}
    if registry is None:
        return values
    keys = own_keys(chart)
    split = {key.path[:-1] for key in keys if key.path[-1] == _REGISTRY}
    for key in keys:
        *parents, last = key.path
        place = key.default.strip("'")
        is_place = last == _REGISTRY if tuple(parents) in split else last in _PLACES
        if not place or not (is_place or (last == _REFERENCE and "/" in place)):
            continue
        below = values
        for parent in parents:
            below = below.setdefault(parent, {})
        below[last] = mirrored(place, registry)
    return values
