"""Replaces files and links atomically: readers never see a partial file, and interrupted writers never leave one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace(path: Path, data: str | bytes, mode: int = 0o600) -> None:
    """Writes a file with this content (text in UTF-8) and mode. Replaces a link, and keeps its target.

    Leaves a file with the same content unchanged, so that watchers do not wake up.
    """
    content = data.encode() if isinstance(data, str) else data
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    with _beside(path) as fresh:
        fresh.write_bytes(content)
        fresh.chmod(mode)


def link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    with _beside(path) as fresh:
        fresh.unlink()
        fresh.symlink_to(target)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    fresh = Path(name)
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
