"""Tags of the images of `docker/`: each is made of its folder's content, so that a changed file is another image."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from config.data.data import FOLDER
from config.data.near import hint, near

IMAGES = FOLDER.parents[1] / "docker"
TAG_LENGTH = 12
_LEFTOVERS = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
"""What tools leave beside scripts and git ignores; no Dockerfile copies them."""


class UnknownImage(ValueError):
    """There is no folder of that name in `docker/`."""


def image_names(folder: Path = IMAGES) -> list[str]:
    """Names of the images of `docker/`: its folders that have a Dockerfile."""
    return sorted(file.parent.name for file in folder.glob("*/Dockerfile"))


def chosen_images(names: Iterable[str], folder: Path = IMAGES) -> list[str]:
    """Returns those images, or all of them where none is named. Commas also separate names. Raises UnknownImage."""
    chosen = sorted({part for name in names for part in name.split(",") if part})
    for name in chosen:
        _require_known(name, folder)
    return chosen or image_names(folder)


def _require_known(name: str, folder: Path) -> None:
    if name not in (known := image_names(folder)):
        msg = f"there is no docker/{name}/Dockerfile{hint(near(name, known))}; the images are {', '.join(known)}"
        raise UnknownImage(msg)


def content_tag(name: str, folder: Path = IMAGES) -> str:
    """Twelve hexadecimal digits that stand for every file of docker/<name>: path, executable or not, content.

    Of a file's mode only the executable bit counts: the others follow the umask of whoever checked it out. Raises
    UnknownImage.
    """
    _require_known(name, folder)
    digest = hashlib.sha256()
    for path in sorted(_files(folder / name), key=lambda file: file.as_posix()):
        relative = path.relative_to(folder / name).as_posix()
        content = path.read_bytes()
        executable = bool(path.stat().st_mode & 0o100)
        # Lengths keep a file's end apart from the next one's name.
        digest.update(f"{len(relative)} {relative} {executable:d} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:TAG_LENGTH]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not set(path.parts) & set(_LEFTOVERS)]
