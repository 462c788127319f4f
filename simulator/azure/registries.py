"""The images of simulated registries: only tags, no content.

Each image is an empty file `<registry>/<repository>/<tag>`, so that a push works while the simulator is stopped.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from simulator.host import paths

DOMAIN = ".azurecr.io"
_REPOSITORY = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}")


class RegistryNotFound(Exception):
    """The simulated subscription has no such registry."""


class Registries:
    """The registries on disk. Methods raise ValueError for a repository or tag that violates the OCI rules."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or paths.home() / "registries"
        self.port: int | None = None
        """The server's port (`registry_front.py`), or None before the server starts."""

    def add(self, registry: str) -> None:
        self._of(registry).mkdir(parents=True, exist_ok=True)

    def remove(self, registry: str) -> None:
        shutil.rmtree(self._of(registry), ignore_errors=True)

    def names(self) -> list[str]:
        return sorted(folder.name for folder in self._folder.glob("*/"))

    def push(self, registry: str, repository: str, tag: str) -> None:
        """Adds an image. Raises RegistryNotFound."""
        if not self._of(registry).is_dir():
            raise RegistryNotFound(
                f"The registry {registry}{DOMAIN} does not exist. To create the stack's registry: make up"
            )
        file = self._image(registry, repository, tag)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def has_image(self, registry: str, repository: str, tag: str) -> bool:
        return self._image(registry, repository, tag).is_file()

    def images(self, registry: str) -> list[str]:
        folder = self._of(registry)
        files = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
        return sorted(f"{file.parent.as_posix()}:{file.name}" for file in files)

    def _of(self, registry: str) -> Path:
        return self._folder / registry.lower()  # names are case-insensitive

    def _image(self, registry: str, repository: str, tag: str) -> Path:
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError(f"'{repository}' is not a repository: use lower-case letters, digits, and . _ - / between")
        if not _TAG.fullmatch(tag):
            raise ValueError(f"'{tag}' is not a tag: use 1 to 128 letters, digits, underscores, periods or hyphens")
        return self._of(registry) / repository / tag
