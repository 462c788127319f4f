"""The blobs of a container that a mount knows.

The mount lists all blobs once. Then the blob service reports the names of changed blobs (`BlobService.changes`), so
updates are cheap even with many thousand blobs. Mounts with the same credential reuse each other's copies.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobProperties, ContainerClient

from simulator.kubelet.csi import confined
from simulator.kubelet.csi.tree import above
from simulator.world.azure_services import Changed

FOLDER = {"hdi_isfolder": "true"}
"""The metadata of a blob that represents a folder (component/azstorage/block_blob.go, CreateDirectory)."""
_AT_ONCE = 8
_NO_NAME = "~" * 64
"""A prefix that no blob has. A list of matching blobs would be slow, because Azurite first sorts all names."""
Signature = tuple[int, int]
Changes = Callable[[int], Changed]
"""Returns the container's changes since a given number of writes."""


@dataclass(frozen=True)
class Entry:
    etag: str
    size: int
    is_folder: bool


class Copies:
    """Files of mounts that are copies of blobs, by the blob's name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, tuple[Entry, Path, Signature]] = {}

    def add(self, name: str, entry: Entry, root: Path, signature: Signature) -> None:
        with self._lock:
            self._found[name] = entry, root, signature

    def entry(self, name: str, etag: str) -> Entry | None:
        known = self._found.get(name)
        return known[0] if known and known[0].etag == etag else None

    def content(self, name: str, etag: str) -> bytes | None:
        """Returns the content of a blob's version (`etag`), or None if no file has this content any more."""
        known = self._found.get(name)
        if known is None or known[0].etag != etag:
            return None
        _, root, found = known
        try:
            with confined.read(root, name) as stream:
                content = stream.read()
                return content if signature(os.fstat(stream.fileno())) == found else None
        except OSError:
            return None


_copies: dict[tuple[str, str], Copies] = {}
_locks: dict[str, threading.Lock] = {}


def copies_of(container: str, secret: str) -> Copies:
    """Returns the copies that all mounts of a container (a URL) with the same key or SAS share."""
    return _copies.setdefault((container, secret), Copies())


def one_at_a_time(container: str) -> threading.Lock:
    """Returns the lock that all mounts of a container (a URL) share."""
    return _locks.setdefault(container, threading.Lock())


def signature(status: os.stat_result) -> Signature:
    return status.st_size, status.st_mtime_ns


class Contents:
    def __init__(self, container: ContainerClient, changes: Changes, copies: Copies) -> None:
        self._container, self._changes, self._copies = container, changes, copies
        self._entries: dict[str, Entry] = {}
        self._below: Counter[str] = Counter()
        """The number of blobs below each folder."""
        self._since = 0
        self._writing = threading.Lock()

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def get(self, name: str) -> Entry | None:
        return self._entries.get(name)

    def shows(self, folder: str) -> bool:
        return folder in self._entries or self._below[folder] > 0

    def put(self, name: str, entry: Entry | None) -> None:
        """Records that a blob was written, or removed if `entry` is None."""
        with self._writing:
            if (name in self._entries) != (entry is not None):
                for folder in above(name):
                    self._below[folder] += 1 if entry else -1
            if entry:
                self._entries[name] = entry
            else:
                self._entries.pop(name, None)

    def look(self) -> Collection[str]:
        """Updates the list of blobs. Returns names that may have changed. Raises AzureError."""
        self._since, changed = self._changes(self._since)
        if changed is None:
            return self._list()
        self._check_access()
        for name, etag in changed.items():
            self.put(name, None if etag is None else self._copies.entry(name, etag) or self._ask(name))
        return changed.keys()

    def _list(self) -> Collection[str]:
        there = {blob.name: _entry(blob) for blob in self._container.list_blobs(include=["metadata"])}
        names = self._entries.keys() | there.keys()
        for name in names:
            self.put(name, there.get(name))
        return names

    def _check_access(self) -> None:
        """Raises AzureError if the container was deleted or cannot be listed."""
        next(iter(self._container.list_blobs(name_starts_with=_NO_NAME, results_per_page=1)), None)

    def _ask(self, name: str) -> Entry | None:
        try:
            return _entry(self._container.get_blob_client(name).get_blob_properties())
        except ResourceNotFoundError:
            return None


def _entry(blob: BlobProperties) -> Entry:
    return Entry(blob.etag.strip('"'), blob.size, (blob.metadata or {}).items() >= FOLDER.items())


def etag_of(answer: Mapping[str, Any]) -> str:
    return str(answer["etag"]).strip('"')


def side_by_side(act: Callable[[str], None], names: Collection[str]) -> None:
    """Acts on names concurrently, because most time is network latency."""
    if names:
        with ThreadPoolExecutor(min(len(names), _AT_ONCE)) as pool:
            list(pool.map(act, names))
