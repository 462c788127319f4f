"""Where images come from: each from its own place, or all from the mirror that `images.registry` names.

A mirror has every image under its own path: nvcr.io/nvidia/driver becomes <registry>/nvidia/driver. The images of
`docker/` come from the stack's own registry, under the tag of their content.
"""

from __future__ import annotations

from typing import Any

from config.data.chart_values import own_keys
from config.data.content_tags import content_tag
from config.data.versions import versions

_PLACES = ("repository", "image_registry")
"""What charts call the keys that say where an image comes from."""
_REGISTRY = "registry"
"""What they call the host, where the repository beside it is without."""
_REFERENCE = "image"
"""What they call one that has an image's name alone, or in some its whole reference."""


def mirrored(place: str, registry: str | None) -> str:
    """A registry, with a path or not, as `registry` has it."""
    if registry is None:
        return place
    _, slash, path = place.partition("/")
    return f"{registry.rstrip('/')}{slash}{path}"


def repository(name: str, registry: str | None) -> str:
    """Where a pinned image lies, without its own name."""
    return mirrored(versions().images[name].repository, registry)


def reference(name: str, registry: str | None) -> str:
    """The whole reference of a pinned image."""
    return f"{repository(name, registry)}/{name}:{versions().images[name].version}"


def own(name: str, *, login_server: str, mirror: str | None) -> str:
    """The whole reference of an image that a workload names: a pinned one, or else one of `docker/`.

    The latter is in the stack's registry, whose host name `login_server` is (as in myregistry.azurecr.io), or in the
    mirror (`images.registry`). Raises UnknownImage.
    """
    if name in versions().images:
        return reference(name, mirror)
    place = login_server if mirror is None else mirror.rstrip("/")
    return f"{place}/{name}:{content_tag(name)}"


def chart_values(chart: str, registry: str | None) -> dict[str, Any]:
    """Values that make a chart take its images from the mirror: its keys file says where it has them from."""
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
