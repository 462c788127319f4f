"""A blob container in memory, with what mounts use of azure-storage-blob's ContainerClient."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, cast

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import ContainerClient


@dataclass
class Blob:
    name: str
    content: bytes
    etag: str
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[bytes]:
        yield self.content


def refused(status: int, code: str) -> HttpResponseError:
    error = HttpResponseError(message=f"{status} {code}")
    error.status_code = status
    error.error_code = code  # type: ignore[attr-defined]
    return error


class FakeContainer:
    """A container opened by a SAS with `permissions`; other calls fail as in the blob service."""

    def __init__(self, permissions: str = "racwdl", **blobs: bytes) -> None:
        self.permissions = permissions
        self._etags = itertools.count(1)
        self.blobs: dict[str, Blob] = {}
        self.url = f"https://{id(self)}.blob.core.windows.net/data"
        for name, content in blobs.items():
            self.put(name.replace("__", "/"), content)

    def as_client(self) -> ContainerClient:
        return cast(ContainerClient, self)

    def put(self, name: str, content: bytes, **metadata: str) -> None:
        self.blobs[name] = Blob(name, content, f"0x{next(self._etags)}", metadata)

    def text(self) -> dict[str, str]:
        return {name: blob.content.decode() for name, blob in sorted(self.blobs.items())}

    def list_blobs(self, **_: Any) -> list[Blob]:
        self._needs("l")
        return list(self.blobs.values())

    def download_blob(self, name: str, *, offset: int, length: int) -> Blob:
        self._needs("r")
        blob = self.blobs[name]
        return Blob(name, blob.content[offset : offset + length], blob.etag)

    def get_blob_client(self, name: str) -> _BlobClient:
        return _BlobClient(self, name)

    def delete_blob(self, name: str) -> None:
        self._needs("d")
        if name not in self.blobs:
            raise ResourceNotFoundError("gone")
        del self.blobs[name]

    def _needs(self, permission: str) -> None:
        if permission not in self.permissions:
            raise refused(403, "AuthorizationPermissionMismatch")


class _BlobClient:
    def __init__(self, container: FakeContainer, name: str) -> None:
        self._container, self._name = container, name

    def upload_blob(
        self, stream: IO[bytes] | bytes, *, overwrite: bool, metadata: dict[str, str] | None = None
    ) -> dict[str, str]:
        assert overwrite
        self._container._needs("w")
        self._container.put(self._name, stream if isinstance(stream, bytes) else stream.read(), **metadata or {})
        return {"etag": f'"{self._container.blobs[self._name].etag}"'}
