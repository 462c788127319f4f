"""Files and links that are replaced in one step: no reader finds half of one, and no kill leaves half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace(path: Path, data: str | bytes, mode: int = 0o600) -> None:
    """Makes `path` a file of this content (text in UTF-8) and mode; a link in its place goes, what it led to stays.

    A file that has the content already is left alone, so that no watcher is woken for nothing.
    """
    content = data.encode() if isinstance(data, str) else data
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    with _beside(path) as fresh:
        fresh.write_bytes(content)
        fresh.chmod(mode)


def link(path: Path, target: Path) -> None:
    """Makes `path` a symbolic link to `target`; left alone where it is that already."""
    if path.is_symlink() and path.readlink() == target:
        return
    with _beside(path) as fresh:
        fresh.unlink()
        fresh.symlink_to(target)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A hidden file of this call's own beside `path`, whose place it takes if all goes well."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    fresh = Path(name)
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
