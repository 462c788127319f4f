"""Accesses files in a folder that pods can write to, without following links out of the folder.

A pod could create a link to any file of this machine.
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
    """Returns whether a path is relative, without empty, `.` or `..` parts."""
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in name.split("/"))


def contained(root: Path, path: Path) -> Path:
    """Returns `path`. Raises VolumeNotReady if a link leads out of `root`."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise VolumeNotReady(f"the simulator does not follow links out of a volume: {path.relative_to(root)}")
    return path


Files = dict[str, os.stat_result]
Folders = dict[str, int]


def tree(root: Path, below: str, before: Callable[[int, str], None]) -> tuple[Files, Folders]:
    """Returns all regular files and folders by path, in the folder `below` of `root`. If `below` is empty, in `root`.

    Before reading a folder, calls `before` with its descriptor and path. Raises OSError if a folder cannot be read.
    """
    files: Files = {}
    folders: Folders = {}
    with _parent(root, f"{below}/." if below else ".", make=False) as (folder, last):
        opened = os.open(last, _FOLDER, dir_fd=folder)
    _walk(opened, below, before, files, folders)
    return files, folders


def _walk(folder: int, path: str, before: Callable[[int, str], None], files: Files, folders: Folders) -> None:
    try:
        before(folder, path)
        with os.scandir(folder) as entries:
            for entry in entries:
                inside = f"{path}/{entry.name}" if path else entry.name
                with contextlib.suppress(FileNotFoundError):  # removed by the pod
                    if entry.is_dir(follow_symlinks=False):
                        inner = os.open(entry.name, _FOLDER, dir_fd=folder)
                        folders[inside] = entry.inode()
                        _walk(inner, inside, before, files, folders)
                    elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_PARTIAL):
                        files[inside] = entry.stat(follow_symlinks=False)
    finally:
        os.close(folder)


def seen(root: Path, name: str) -> os.stat_result | None:
    """Returns the file's status, or None if it does not exist or its folder is a link.

    Raises OSError if the file may exist but cannot be checked.
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
    try:
        with _parent(root, name, make=False) as (folder, last):
            return os.stat(last, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def read(root: Path, name: str) -> IO[bytes]:
    """Opens a regular file. Raises OSError for links and missing files."""
    with _parent(root, name, make=False) as (folder, last):
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is not a regular file")
    return os.fdopen(descriptor, "rb")


def write(root: Path, name: str, chunks: Iterable[bytes], size: int) -> os.stat_result:
    """Writes a file of `size` bytes atomically: first `chunks`, then a hole."""
    with _parent(root, name, make=True) as (folder, last):
        partial = _PARTIAL + last
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # fails if a pod has created a link or pipe there
        with os.fdopen(os.open(partial, flags, 0o644, dir_fd=folder), "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.truncate(size)
        os.replace(partial, last, src_dir_fd=folder, dst_dir_fd=folder)
        return os.stat(last, dir_fd=folder, follow_symlinks=False)


def remove(root: Path, name: str) -> None:
    with contextlib.suppress(FileNotFoundError), _parent(root, name, make=False) as (folder, last):
        os.unlink(last, dir_fd=folder)


def remove_folder(root: Path, name: str) -> None:
    """Removes a folder if it is empty."""
    with contextlib.suppress(OSError), _parent(root, name, make=False) as (folder, last):
        os.rmdir(last, dir_fd=folder)


def make_folder(root: Path, name: str) -> None:
    with _parent(root, name + "/.", make=True):
        pass


@contextlib.contextmanager
def _parent(root: Path, name: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """Yields the parent folder's descriptor, and the last part of `name`. Raises OSError if a folder is a link."""
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
