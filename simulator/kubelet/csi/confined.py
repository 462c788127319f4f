"""Files below a folder that pods can write to: no link that a pod makes there leads out of it.

Sandboxed pods see nothing of this machine, but the simulator reads and writes their folders from outside.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PARTIAL = ".blobfuse-partial-"


def is_plain(name: str) -> bool:
    """Whether a path is relative and stays where it starts."""
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def tree(root: Path) -> tuple[dict[str, os.stat_result], set[str]]:
    """All regular files below `root`, and all folders, by relative path; links are left out and not followed.

    Raises OSError where a folder cannot be read: nobody knows then what it holds.
    """
    found: dict[str, os.stat_result] = {}
    folders: set[str] = set()
    _walk(os.open(root, _FOLDER), "", found, folders)
    return found, folders


def _walk(folder: int, prefix: str, found: dict[str, os.stat_result], folders: set[str]) -> None:
    """Adds what is in a folder, and closes it."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # the pod removed it meanwhile
                    if entry.is_dir(follow_symlinks=False):
                        inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                        folders.add(prefix + entry.name)
                        _walk(inner, f"{prefix}{entry.name}/", found, folders)
                    elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_PARTIAL):
                        found[prefix + entry.name] = entry.stat(follow_symlinks=False)
    finally:
        os.close(folder)


def status(root: Path, name: str) -> os.stat_result | None:
    """Of a file, not what it links to; None where there is none."""
    try:
        with _parent(root, name, make=False) as (folder, last):
            return os.stat(last, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def read(root: Path, name: str) -> IO[bytes]:
    """An open regular file. Raises OSError for links and what is gone."""
    with _parent(root, name, make=False) as (folder, last):
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is no regular file")
    return os.fdopen(descriptor, "rb")


def write(root: Path, name: str, chunks: Iterable[bytes], size: int) -> os.stat_result:
    """Puts a file of `size` bytes there at once; beyond what `chunks` holds it is a hole."""
    with _parent(root, name, make=True) as (folder, last):
        partial = _PARTIAL + last
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # so that it is neither a link nor a pipe of a pod
        with os.fdopen(os.open(partial, flags, 0o644, dir_fd=folder), "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.truncate(size)
        os.replace(partial, last, src_dir_fd=folder, dst_dir_fd=folder)
        return os.stat(last, dir_fd=folder, follow_symlinks=False)


def remove(root: Path, name: str) -> None:
    """Removes a file, if it is there."""
    with contextlib.suppress(FileNotFoundError), _parent(root, name, make=False) as (folder, last):
        os.unlink(last, dir_fd=folder)


def remove_folder(root: Path, name: str) -> None:
    """Removes a folder, if it is there and empty."""
    with contextlib.suppress(OSError), _parent(root, name, make=False) as (folder, last):
        os.rmdir(last, dir_fd=folder)


def make_folder(root: Path, name: str) -> None:
    """Makes a folder and those above it."""
    with _parent(root, name + "/.", make=True):
        pass


@contextlib.contextmanager
def _parent(root: Path, name: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `name`, and its last part. Raises OSError where a part is a link."""
    *folders, last = name.split("/")
    descriptor = os.open(root, _FOLDER)
    try:
        for part in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, last
    finally:
        os.close(descriptor)
