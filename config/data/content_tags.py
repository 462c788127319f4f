"""Content-based tags of the images of `docker/`: a changed file changes the tag."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from config.data.data import FOLDER
from config.data.near import hint, near

IMAGES = FOLDER.parents[1] / "docker"
TAG_LENGTH = 12
_LEFTOVERS = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")


class UnknownImage(ValueError):
    """Raised if `docker/` has no folder with the image's name."""


def image_names(folder: Path = IMAGES) -> list[str]:
    return sorted(file.parent.name for file in folder.glob("*/Dockerfile"))


def chosen_images(names: Iterable[str], folder: Path = IMAGES) -> list[str]:
    """Returns the images in `names`, or all images if `names` is empty. An item may be a list with commas. Raises
    UnknownImage.
    """
    chosen = sorted({part for name in names for part in name.split(",") if part})
    for name in chosen:
        _require_known(name, folder)
    return chosen or image_names(folder)


def _require_known(name: str, folder: Path) -> None:
    if name not in (known := image_names(folder)):
        msg = f"docker/{name}/Dockerfile does not exist{hint(near(name, known))}; the images are {', '.join(known)}"
        raise UnknownImage(msg)


def content_tag(name: str, folder: Path = IMAGES) -> str:
    """Returns a twelve-digit hexadecimal hash of all files in docker/<name>: path, executable bit, content.

    Ignores other mode bits, which depend on the umask of the checkout. Raises UnknownImage.
    """
    _require_known(name, folder)
    digest = hashlib.sha256()
    for path in sorted(_files(folder / name), key=lambda file: file.as_posix()):
        relative = path.relative_to(folder / name).as_posix()
        content = path.read_bytes()
        executable = bool(path.stat().st_mode & 0o100)
        # Without the lengths, other names and contents could have the same hash.
        digest.update(f"{len(relative)} {relative} {executable:d} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:TAG_LENGTH]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not set(path.parts) & set(_LEFTOVERS)]
