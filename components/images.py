"""References of the images that the program names itself."""

from __future__ import annotations

from config.versions import versions


def repository(name: str, registry: str | None) -> str:
    """Where the image lies, without its own name: its own place, or the same path in the mirror `registry`."""
    own = versions().images[name].repository
    if registry is None:
        return own
    _, _, path = own.partition("/")
    return f"{registry.rstrip('/')}/{path}"


def reference(name: str, registry: str | None) -> str:
    """The whole reference, with the pinned tag."""
    return f"{repository(name, registry)}/{name}:{versions().images[name].version}"
