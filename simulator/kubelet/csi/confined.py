"""Files below a folder that pods can write to: no link that a pod makes there leads out of it.

Sandboxed pods see nothing of this machine, but the simulator reads and writes their folders from outside.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from simulator.kubelet.errors import VolumeNotReady

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PARTIAL = ".blobfuse-partial-"


def is_plain(name: str) -> bool:
    """Whether a path is relative and stays where it starts."""
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def contained(root: Path, path: Path) -> Path:
    """`path`, unless a link that a pod made there leads out of `root`, to files of this machine."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise VolumeNotReady(f"the simulator follows no link out of a volume: {path.relative_to(root)}")
    return path


Files = dict[str, os.stat_result]
Folders = dict[str, int]
"""Inodes by path."""


def tree(root: Path, below: str, before: Callable[[int, str], None]) -> tuple[Files, Folders]:
    """All regular files, and all folders, in the folder `below` of `root` (or in itself), by their paths from there.

    Links are left out and not followed. `before` is given each folder, open, and its path, before it is read.
    Raises OSError where a folder cannot be read: nobody knows then what it holds.
    """
    files: Files = {}
    folders: Folders = {}
    with _parent(root, f"{below}/." if below else ".", make=False) as (folder, last):
        opened = os.open(last, _FOLDER, dir_fd=folder)
    _walk(opened, below, before, files, folders)
    return files, folders


def _walk(folder: int, path: str, before: Callable[[int, str], None], files: Files, folders: Folders) -> None:
    """Adds what is in a folder, and closes it."""
    try:
        before(folder, path)
        with os.scandir(folder) as entries:
            for entry in entries:
                inside = f"{path}/{entry.name}" if path else entry.name
                with contextlib.suppress(FileNotFoundError):  # the pod removed it meanwhile
                    if entry.is_dir(follow_symlinks=False):
                        inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                        folders[inside] = entry.inode()
                        _walk(inner, inside, before, files, folders)
                    elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_PARTIAL):
                        files[inside] = entry.stat(follow_symlinks=False)
    finally:
        os.close(folder)


def seen(root: Path, name: str) -> os.stat_result | None:
    """What stands there itself; None where there is nothing, or a link is on the way.

    Raises OSError where it cannot be looked at: nobody knows then whether it is there.
    """
    if name.rpartition("/")[2].startswith(_PARTIAL):
        return None
    try:
        with _parent(root, name, make=False) as (descriptor, last):
            return os.stat(last, dir_fd=descriptor, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


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
