"""The images of the simulated registries: which tags a registry holds, not what is in them.

A folder per registry, `<registry>/<repository>/<tag>` an empty file each, so that a push needs no running simulator.
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
    """There is no such registry in the simulated subscription."""


class Registries:
    """Raises ValueError for what is no repository or tag (the rules of the Open Container Initiative)."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or paths.home() / "registries"
        self.port: int | None = None
        """Where clients come in (`registry_front.py`), once they do."""

    def add(self, registry: str) -> None:
        """A new registry, which is empty; one that is there keeps its images."""
        self._of(registry).mkdir(parents=True, exist_ok=True)

    def remove(self, registry: str) -> None:
        shutil.rmtree(self._of(registry), ignore_errors=True)

    def names(self) -> list[str]:
        """All registries there are."""
        return sorted(folder.name for folder in self._folder.glob("*/"))

    def push(self, registry: str, repository: str, tag: str) -> None:
        """Registers an image. Raises RegistryNotFound."""
        if not self._of(registry).is_dir():
            raise RegistryNotFound(
                f"There is no registry {registry}{DOMAIN} in the simulated Azure: `make up` makes the stack's own."
            )
        file = self._image(registry, repository, tag)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def has_image(self, registry: str, repository: str, tag: str) -> bool:
        return self._image(registry, repository, tag).is_file()

    def images(self, registry: str) -> list[str]:
        """All that it holds, as `<repository>:<tag>`, in order."""
        folder = self._of(registry)
        files = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
        return sorted(f"{file.parent.as_posix()}:{file.name}" for file in files)

    def _of(self, registry: str) -> Path:
        return self._folder / registry.lower()  # names are compared without case

    def _image(self, registry: str, repository: str, tag: str) -> Path:
        if not _REPOSITORY.fullmatch(repository):
            raise ValueError(f"'{repository}' is no repository: lower-case letters, digits and . _ - / between them")
        if not _TAG.fullmatch(tag):
            raise ValueError(f"'{tag}' is no tag: 1 to 128 letters, digits, underscores, periods or hyphens")
        return self._of(registry) / repository / tag
