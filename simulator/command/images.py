"""Registers images of `docker/` in the registries without building them. Tags are content hashes.

`simulator/sandbox/recipes/` has what simulated containers run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from config.data.content_tags import chosen_images, content_tag
from simulator.azure.registries import Registries, RegistryNotFound

_LOOK_S = 0.5


def push_all(registries: Registries | None = None, names: Sequence[str] = ()) -> dict[str, list[str]]:
    """Registers the images `names`, or all, in every registry.

    Returns each registry's new images, as `<name>:<tag>`. Raises UnknownImage.
    """
    return _push_all(registries or Registries(), _tags(names))


def _tags(names: Sequence[str] = ()) -> dict[str, str]:
    return {name: content_tag(name) for name in chosen_images(names)}


def _push_all(store: Registries, tags: dict[str, str]) -> dict[str, list[str]]:
    return {registry: _push(store, registry, tags) for registry in store.names()}


@contextmanager
def registering(registries: Registries | None = None) -> Iterator[None]:
    """Registers the images as soon as a registry appears, while `pulumi up` runs."""
    stop, store, tags = threading.Event(), registries or Registries(), _tags()

    def keep_pushing() -> None:
        while not stop.wait(_LOOK_S):
            _push_all(store, tags)

    thread = threading.Thread(target=keep_pushing, name="images", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        _push_all(store, tags)


def _push(store: Registries, registry: str, tags: dict[str, str]) -> list[str]:
    missing = [(name, tag) for name, tag in tags.items() if not store.has_image(registry, name, tag)]
    try:
        for name, tag in missing:
            store.push(registry, name, tag)
    except RegistryNotFound:  # the registry was destroyed
        return []
    return [f"{name}:{tag}" for name, tag in missing]
