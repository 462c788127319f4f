"""An index of the files and folders below a folder that pods write to.

The kernel's change events keep it up to date (inotify(7)), so updates are cheap even with many thousand files. If the
kernel has no watches left (fs.inotify.max_user_watches), each update reads all files.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from inotify_simple import INotify, flags

from simulator.kubelet.csi import confined

_CHANGES = flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO | flags.MODIFY | flags.ATTRIB
_WATCH = _CHANGES | flags.CLOSE_WRITE | flags.ONLYDIR
"""Includes CLOSE_WRITE, because the kernel reports no other event for writes by mmap(2)."""
_ANOTHER = 0
"""The inode that is recorded for a path that is no longer the watched folder."""

_Found = TypeVar("_Found")


class Tree:
    """The regular files and folders below `root`, without following links. Not thread-safe."""

    def __init__(self, root: Path) -> None:
        self.files: dict[str, os.stat_result] = {}
        self.folders: dict[str, int] = {}
        """Inodes of folders by relative path."""
        self.touched: set[str] = set()
        """Created, removed or changed paths, which the caller removes after processing."""
        self._root = root
        self._inside: defaultdict[str, set[str]] = defaultdict(set)
        self._notify: INotify | None = None
        self._no_more = False
        self._watched: dict[int, str] = {}
        self._watch_of: dict[str, int] = {}
        self._unseen: set[str] = set()

    def look(self) -> None:
        """Updates the tree. Raises OSError if a folder cannot be read. The next call retries."""
        events = self._notify.read(timeout=0) if self._notify else []
        if self._notify is None or any(event.mask & flags.Q_OVERFLOW for event in events):
            self._read_all()
            return
        for event in events:
            folder = self._watched.get(event.wd)
            if folder is None:
                continue
            if event.mask & flags.IGNORED:
                self._lose(event.wd, folder)
            elif event.name:
                self._unseen.add(f"{folder}/{event.name}" if folder else event.name)
            if event.mask & (flags.ISDIR | flags.IGNORED):  # paths may mean other folders in later events
                self._settle()
        self._settle()

    def close(self) -> None:
        """Ends the watches. The next `look` reads all folders."""
        if self._notify:
            self._notify.close()
        self._notify, self._watched, self._watch_of = None, {}, {}

    def __del__(self) -> None:
        self.close()

    def _read_all(self) -> None:
        self.close()
        self.touched |= {*self.files, *self.folders}
        self.files, self.folders, self._inside, self._unseen = {}, {}, defaultdict(set), set()
        try:
            self._notify = None if self._no_more else INotify()
        except OSError:  # the user's limit (fs.inotify.max_user_instances)
            self._no_more = True
        try:
            self._add("")
        except OSError:
            self.close()
            raise

    def _settle(self) -> None:
        while self._unseen:
            path = next(iter(self._unseen))
            self._see(path)
            self._unseen.discard(path)

    def _see(self, path: str) -> None:
        found = confined.seen(self._root, path)
        if found and stat.S_ISDIR(found.st_mode):
            if self.folders.get(path) != found.st_ino:
                self._forget(path)
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # removed again: an event follows
                    self._add(path)
                    self._put({path: found.st_ino}, self.folders)
        elif found and stat.S_ISREG(found.st_mode):
            if path not in self.files:
                self._forget(path)
            self._put({path: found}, self.files)
        else:
            self._forget(path)

    def _add(self, path: str) -> None:
        """Adds a folder. Watches it before reading it, so that no change is missed."""
        files, folders = confined.tree(self._root, path, self._watch)
        self._put(files, self.files)
        self._put(folders, self.folders)

    def _put(self, found: dict[str, _Found], where: dict[str, _Found]) -> None:
        where |= found
        self.touched |= found.keys()
        for path in found:
            self._inside[_folder_of(path)].add(path)

    def _watch(self, descriptor: int, path: str) -> None:
        if self._notify is None:
            return
        try:
            watch = self._notify.add_watch(f"/proc/self/fd/{descriptor}", _WATCH)
        except OSError:
            self._no_more = True
            self.close()
            return
        self._watched[watch], self._watch_of[path] = path, watch

    def _lose(self, watch: int, folder: str) -> None:
        del self._watched[watch]
        if self._watch_of.get(folder) == watch:
            del self._watch_of[folder]
            self.folders[folder] = _ANOTHER
            self._unseen.add(folder)

    def _forget(self, path: str) -> None:
        self._inside[_folder_of(path)].discard(path)
        known = self.files.pop(path, None) or self.folders.pop(path, None) is not None
        if not known:
            return
        self.touched.add(path)
        self._unwatch(path)
        for inner in self._inside.pop(path, set()).copy():
            self._forget(inner)

    def _unwatch(self, folder: str) -> None:
        watch = self._watch_of.pop(folder, None)
        if watch is not None and self._watched.get(watch) == folder:  # a moved folder keeps its watch
            del self._watched[watch]
            if self._notify:
                with contextlib.suppress(OSError):  # the kernel has removed it
                    self._notify.rm_watch(watch)


def above(path: str) -> Iterable[str]:
    while path := _folder_of(path):
        yield path


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
