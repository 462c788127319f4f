"""A blob container as a folder: what blobfuse2 would mount, copied by real REST calls, since bubblewrap has no FUSE.

What pods write goes to the container every two seconds, and when one of their containers ends; what others write comes
every six, and when a pod mounts it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import BlobProperties, ContainerClient

from simulator.kubelet.csi import confined

UPLOAD_EVERY_S = 2.0
DOWNLOAD_EVERY = 3  # uploads; blobfuse2 looks again after 120 s (attr-cache-timeout)
_SETTLED_S = 1.0
WHOLE_BYTES = 256 * 2**20
"""Of larger blobs only the beginning is copied; the rest of the file is a hole."""
_BEGINNING_BYTES = 2**20
_NOT_AUTHENTIC = ("AuthorizationFailure", "InvalidAuthenticationInfo")
"""What Azurite says where Azure says AuthenticationFailed."""

Signature = tuple[int, int]
"""Size and modification time of a file."""


@dataclass
class _Copied:
    etag: str
    signature: Signature


class BlobMount:
    """Keeps `folder` and the container alike. Errors while writing go to `report`, as no process can be given them."""

    def __init__(
        self, container: ContainerClient, folder: Path, *, read_only: bool, report: Callable[[str], None]
    ) -> None:
        """Copies what is there. Raises AzureError."""
        self.path, self.read_only = folder, read_only
        self._container, self._report = container, report
        self._copied: dict[str, _Copied] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        self._download()
        threading.Thread(target=self._keep_alike, name=f"blobfuse-{folder.name}", daemon=True).start()

    def refresh(self) -> None:
        """Sends what pods wrote, then takes what others wrote."""
        self.flush()
        self._take()

    def flush(self) -> None:
        """Sends everything that pods wrote so far."""
        if not self.read_only:
            with self._lock:
                self._upload(settled=False)

    def close(self) -> None:
        """Waits for the copy that is under way; from then on nothing is copied, and the folder may go."""
        with self._lock:
            self._closed.set()

    def _keep_alike(self) -> None:
        rounds = 0
        while not self._closed.wait(UPLOAD_EVERY_S):
            rounds += 1
            if not self.read_only:
                with self._lock:
                    self._upload(settled=True)
            if rounds % DOWNLOAD_EVERY == 0:
                self._take()

    def _take(self) -> None:
        """What is mounted stays so; the reads of blobfuse2 would fail in the pods."""
        try:
            with self._lock:
                self._download()
        except AzureError as error:
            self._report(f"reading the container failed: {reason(error)}")

    # -- from the container --------------------------------------------------------------------------------------------

    def _download(self) -> None:
        if self._closed.is_set():
            return
        there = {blob.name: blob for blob in self._container.list_blobs(include=["metadata"])}
        for name, blob in there.items():
            if confined.is_plain(name):
                self._here(name, partial(self._fetch, name, blob))
        for name in [name for name in self._copied if name not in there]:
            if not self._changed_here(name):
                self._here(name, partial(self._drop, name))

    def _here(self, name: str, change: Callable[[], None]) -> None:
        """Makes a change in the folder. A pod may have put a link, or a file for a folder, in its way."""
        try:
            change()
        except OSError as error:
            self._report(f"{name}: {error}")

    def _fetch(self, name: str, blob: BlobProperties) -> None:
        if (blob.metadata or {}).get("hdi_isfolder") == "true":
            confined.make_folder(self.path, name)
            return
        before = self._copied.get(name)
        if (before and before.etag == blob.etag) or self._changed_here(name):
            return
        try:
            status = confined.write(self.path, name, self._content(name, blob), blob.size)
        except ResourceNotFoundError:  # deleted since it was listed
            return
        self._copied[name] = _Copied(blob.etag, _signature(status))

    def _drop(self, name: str) -> None:
        confined.remove(self.path, name)
        del self._copied[name]

    def _changed_here(self, name: str) -> bool:
        """Whether a pod has written a file that is yet to be sent; then that is the newer one."""
        status, known = confined.status(self.path, name), self._copied.get(name)
        return status is not None and (known is None or known.signature != _signature(status))

    def _content(self, name: str, blob: BlobProperties) -> Iterator[bytes]:
        length = blob.size if blob.size <= WHOLE_BYTES else _BEGINNING_BYTES
        if not length:  # storage refuses a range of nothing
            return iter(())
        return iter(self._container.download_blob(name, offset=0, length=length).chunks())

    # -- to the container ----------------------------------------------------------------------------------------------

    def _upload(self, *, settled: bool) -> None:
        """All that changed; with `settled` only files that nobody has written to for a moment, as if closed."""
        if self._closed.is_set():
            return
        try:
            here = {name: _signature(status) for name, status in confined.files(self.path)}
        except OSError as error:  # what cannot be seen must not count as removed
            self._report(f"nothing is written while a folder cannot be read: {error}")
            return
        for name, signature in here.items():
            known = self._copied.get(name)
            young = time.time_ns() - signature[1] < _SETTLED_S * 1e9
            if (known is None or known.signature != signature) and not (settled and young):
                self._send(name, signature)
        for name in [name for name in self._copied if name not in here]:
            self._delete(name)

    def _send(self, name: str, signature: Signature) -> None:
        try:
            with confined.read(self.path, name) as stream:
                answer = self._container.get_blob_client(name).upload_blob(stream, overwrite=True)
        except FileNotFoundError:  # the pod removed it meanwhile
            return
        except (AzureError, OSError) as error:
            self._report(f"writing {name} failed: {reason(error)}")
        else:
            self._copied[name] = _Copied(str(answer["etag"]).strip('"'), signature)

    def _delete(self, name: str) -> None:
        """A blob that may not be deleted comes back at the next refresh, its etag forgotten."""
        del self._copied[name]
        try:
            self._container.delete_blob(name)
        except ResourceNotFoundError:
            return
        except AzureError as error:
            self._report(f"deleting {name} failed: {reason(error)}")


def reason(error: Exception) -> str:
    """Storage's error code where it gave one, as Azure has it; else the error's text."""
    code = getattr(error, "error_code", None)
    text = str(getattr(code, "value", code) or error)
    return "AuthenticationFailed" if text in _NOT_AUTHENTIC else text


def _signature(status: os.stat_result) -> Signature:
    return status.st_size, status.st_mtime_ns
