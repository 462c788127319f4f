"""Copies a blob container to a folder and back by REST calls, because blobfuse2 needs FUSE, which bubblewrap lacks.

Sends the writes of pods every two seconds, and when a container of the pod ends. Copies the changes of other clients
when a pod mounts the folder, and after a tenth of the time for which the kernel and blobfuse2 cache names. Without a
cache, sends and copies twice a second.

In a hierarchical namespace, other mounts see all changes of a pass together. In a flat namespace, they see one blob
after the other, as with blobfuse2.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from simulator.kubelet.csi import confined
from simulator.kubelet.csi.contents import (
    FOLDER,
    Changes,
    Contents,
    Copies,
    Entry,
    Signature,
    etag_of,
    side_by_side,
    signature,
)
from simulator.kubelet.csi.tree import Tree, above
from simulator.world.azure_services import UNKNOWN

EVERY_S, EVERY_S_UNREMEMBERED = 2.0, 0.5
FASTER = 10
_SETTLED_S = 1.0
MAX_FULL_COPY_BYTES = 256 * 2**20
"""If a blob is larger, only its beginning is copied. The rest of the file is a hole."""
_BEGINNING_BYTES = 2**20
_COPIED_BYTES = 64 * 2**20
"""If a blob is larger, it is not copied from another mount's file, because that takes too much memory."""
_NOT_AUTHENTIC = ("AuthorizationFailure", "InvalidAuthenticationInfo")
"""Azurite's codes for errors that have the code AuthenticationFailed on Azure."""
_NOT_FROM_HERE = "This request is not authorized to perform this operation."
"""The message of AuthorizationFailure if the account denies access from the client's network."""


@dataclass
class _Copied:
    etag: str
    signature: Signature


class BlobMount:
    """A folder that stays equal to the blob container. Errors go to `report`, because no process can see them."""

    def __init__(
        self,
        container: ContainerClient,
        folder: Path,
        *,
        read_only: bool,
        report: Callable[[str], None],
        remembers_s: float = 0,
        lock: threading.Lock | None = None,
        changes: Changes = lambda _since: UNKNOWN,
        copies: Copies | None = None,
    ) -> None:
        """Copies the container. Raises AzureError.

        `remembers_s` is the cache time on real Azure. Mounts with the same `lock` see complete passes of each other.
        """
        self.path, self.read_only = folder, read_only
        self._container, self._report, self._late_s = container, report, remembers_s / FASTER
        self._copies = copies or Copies()
        self._there = Contents(container, changes, self._copies)
        self._tree = Tree(folder)
        self._doubtful: set[str] = set()
        """Names that may differ between the folder and the container."""
        self._copied: dict[str, _Copied] = {}
        self._folders: set[str] = set()
        self._noticed: dict[tuple[str, str], float] = {}
        """The time when each change that is not copied yet (name and etag) was first seen."""
        self._lock = lock or threading.Lock()
        self._closed = threading.Event()
        self._refreshing, self._as_of = threading.Lock(), float("-inf")
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._download(at_once=True)
        self._begin()

    def _begin(self) -> None:
        threading.Thread(target=self._keep_alike, name=f"blobfuse-{self.path.name}", daemon=True).start()

    def refresh(self) -> None:
        """Sends the writes of pods, then copies changes from the container. One pass serves all waiting callers."""
        requested = time.monotonic()
        with self._refreshing:
            if self._as_of < requested:
                begun = time.monotonic()
                self.flush()
                self._take(at_once=True)
                self._as_of = begun

    def flush(self) -> None:
        if not self.read_only:
            with self._lock:
                self._upload(settled=False)

    def close(self, *, waits: bool = True) -> bool:
        """Stops copying and returns True. Without `waits`, returns False if a pass is running, and does not stop."""
        if closed := self._lock.acquire(blocking=waits):
            self._closed.set()
            self._lock.release()
        return closed

    def is_alike(self) -> bool:
        if self.read_only:
            return True
        try:
            self._tree.look()
        except OSError:
            return False
        return not any(self._to_send(settled=False)) and not any(self._folders_to_send())

    def discard(self) -> None:
        self._tree.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def reopen(self) -> None:
        """Mounts again after `close`, with the files in the folder. If it raises AzureError, the mount stays closed."""
        with self._lock:
            self._closed = threading.Event()
            try:
                self._download(at_once=True)
            except AzureError:
                self._closed.set()
                raise
        self._begin()

    def _keep_alike(self) -> None:
        closed = self._closed
        while not closed.wait(EVERY_S if self._late_s else EVERY_S_UNREMEMBERED):
            if not self.read_only:
                with self._lock:
                    self._upload(settled=True)
            self._take()

    def _take(self, *, at_once: bool = False) -> None:
        """Copies changes from the container. After an error, keeps the files, although blobfuse2 would fail to read."""
        try:
            with self._lock:
                self._download(at_once=at_once)
        except AzureError as error:
            self._report(f"reading the container failed: {reason(error)}")

    # -- from the container --------------------------------------------------------------------------------------------

    def _download(self, *, at_once: bool) -> None:
        if self._closed.is_set():
            return
        self._doubtful.update(self._there.look())
        changed, gone = self._differences()
        seen = self._seen({**changed, **dict.fromkeys(gone, "")}, at_once=at_once)
        side_by_side(lambda name: self._here(name, partial(self._fetch, name)), set(seen) & set(changed))
        for name in seen:
            if name not in changed and (name in self._folders or not self._changed_here(name)):
                self._here(name, partial(self._drop, name))

    def _differences(self) -> tuple[dict[str, str], list[str]]:
        changed, gone = {}, []
        for name in self._doubtful:
            entry = self._there.get(name)
            if entry is None:
                gone += [name] if name in self._copied or name in self._folders else []
            elif confined.is_plain(name) and self._is_new(name, entry):
                changed[name] = entry.etag
        self._doubtful = {*changed, *gone}
        return changed, gone

    def _is_new(self, name: str, entry: Entry) -> bool:
        known = self._copied.get(name)
        return name not in self._folders and (known is None or known.etag != entry.etag)

    def _seen(self, changes: Mapping[str, str], *, at_once: bool) -> list[str]:
        now = time.monotonic()
        self._noticed = {(name, etag): self._noticed.get((name, etag), now) for name, etag in changes.items()}
        return [name for (name, _), since in self._noticed.items() if at_once or now - since >= self._late_s]

    def _here(self, name: str, change: Callable[[], None]) -> None:
        try:
            change()
        except OSError as error:
            self._report(f"{name}: {error}")

    def _fetch(self, name: str) -> None:
        blob = self._there[name]
        if blob.is_folder:
            confined.make_folder(self.path, name)
            self._folders.add(name)
            self._tree.touched.add(name)
            return
        if self._changed_here(name):
            return
        try:
            status = confined.write(self.path, name, self._content(name, blob), blob.size)
        except ResourceNotFoundError:  # deleted after it was listed
            return
        self._know(name, blob.etag, signature(status))

    def _know(self, name: str, etag: str, found: Signature) -> None:
        self._copied[name] = _Copied(etag, found)
        self._tree.touched.add(name)  # a pod may change it before the next look
        self._copies.add(name, Entry(etag, found[0], is_folder=False), self.path, found)

    def _drop(self, name: str) -> None:
        if name in self._folders:
            self._folders.remove(name)
        else:
            confined.remove(self.path, name)
            del self._copied[name]
        for folder in (name, *above(name)):
            if not self._there.shows(folder):
                confined.remove_folder(self.path, folder)

    def _changed_here(self, name: str) -> bool:
        status, known = confined.status(self.path, name), self._copied.get(name)
        return status is not None and (known is None or known.signature != signature(status))

    def _content(self, name: str, blob: Entry) -> Iterator[bytes]:
        length = blob.size if blob.size <= MAX_FULL_COPY_BYTES else _BEGINNING_BYTES
        if not length:  # storage rejects an empty range
            return iter(())
        if blob.size <= _COPIED_BYTES and (content := self._copies.content(name, blob.etag)) is not None:
            return iter((content,))
        return iter(self._container.download_blob(name, offset=0, length=length).chunks())

    # -- to the container ----------------------------------------------------------------------------------------------

    def _upload(self, *, settled: bool) -> None:
        """Sends the writes of pods. If `settled`, skips files of the last second, which may still be open."""
        if self._closed.is_set():
            return
        try:
            self._tree.look()
        except OSError as error:  # unreadable files must not count as removed
            self._report(f"nothing is written while a folder cannot be read: {error}")
            return
        changed, gone = self._to_send(settled=settled)
        side_by_side(lambda name: self._send(name, changed[name]), changed)
        side_by_side(self._delete, gone)
        self._upload_folders()
        unsent, _ = self._to_send(settled=False)
        made, _ = self._folders_to_send()
        self._tree.touched = {*unsent, *made}

    def _to_send(self, *, settled: bool) -> tuple[dict[str, Signature], list[str]]:
        files, touched = self._tree.files, self._tree.touched
        here = {name: signature(files[name]) for name in touched & files.keys()}
        changed = {name: each for name, each in here.items() if not self._is_sent(name, each, settled=settled)}
        return changed, [name for name in touched & self._copied.keys() if name not in files]

    def _is_sent(self, name: str, found: Signature, *, settled: bool) -> bool:
        known = self._copied.get(name)
        young = time.time_ns() - found[1] < _SETTLED_S * 1e9
        return (known is not None and known.signature == found) or (settled and young)

    def _folders_to_send(self) -> tuple[list[str], set[str]]:
        near = {*self._tree.touched, *(folder for name in self._tree.touched for folder in above(name))}
        new = near & self._tree.folders.keys() - self._folders
        return [name for name in new if not self._there.shows(name)], near & self._folders - self._tree.folders.keys()

    def _upload_folders(self) -> None:
        _, gone = self._folders_to_send()
        for name in gone:
            self._folders.remove(name)
            self._remove(name)
        new, _ = self._folders_to_send()  # a folder's last blob may have just been removed
        for name in sorted(new, reverse=True):
            if not self._there.shows(name):  # a blob below may have been sent since
                try:
                    answer = self._container.get_blob_client(name).upload_blob(b"", overwrite=True, metadata=FOLDER)
                except AzureError as error:
                    self._report(f"making {name} failed: {reason(error)}")
                else:
                    self._folders.add(name)
                    made = Entry(etag_of(answer), 0, is_folder=True)
                    self._there.put(name, made)
                    self._copies.add(name, made, self.path, (0, 0))

    def _send(self, name: str, found: Signature) -> None:
        try:
            with confined.read(self.path, name) as stream:
                answer = self._container.get_blob_client(name).upload_blob(stream, overwrite=True)
        except FileNotFoundError:  # removed by the pod
            return
        except (AzureError, OSError) as error:
            self._report(f"writing {name} failed: {reason(error)}")
        else:
            self._know(name, etag_of(answer), found)
            self._there.put(name, Entry(etag_of(answer), found[0], is_folder=False))

    def _delete(self, name: str) -> None:
        """Deletes a blob. Forgets its etag, so that the next refresh restores the file if this fails."""
        del self._copied[name]
        self._doubtful.add(name)
        self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            self._container.delete_blob(name)
        except ResourceNotFoundError:
            self._there.put(name, None)
        except AzureError as error:
            self._report(f"deleting {name} failed: {reason(error)}")
        else:
            self._there.put(name, None)


def reason(error: Exception) -> str:
    """Returns the error code that Azure would return, or the error's text."""
    code = getattr(error, "error_code", None)
    text = str(getattr(code, "value", code) or error)
    own_words = text in _NOT_AUTHENTIC and not str(error).startswith(_NOT_FROM_HERE)
    return "AuthenticationFailed" if own_words else text
