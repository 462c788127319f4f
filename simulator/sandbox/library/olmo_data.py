"""Emulates olmo-data.org. Every data file that a config can name exists. A file's path determines its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

HOST = "olmo-data.org"
FILE_BYTES = 256 * 1024  # gigabytes on real Azure
_FOLDERS = ("/preprocessed/", "/eval-data/")


@dataclass(frozen=True)
class Answer:
    """An answer of an HTTP server."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def content(path: str) -> bytes:
    return hashlib.shake_256(path.encode()).digest(FILE_BYTES)


def answer(method: str, path: str, byte_range: str) -> Answer:
    """Returns the server's answer. `byte_range` is `first-last`, or empty for all."""
    if not (path.startswith(_FOLDERS) and path.endswith(".npy")):
        return Answer(404, "Not Found", {"Content-Length": "0"})
    if method not in ("GET", "HEAD"):
        return Answer(405, "Method Not Allowed", {"Content-Length": "0"})
    tag = f'"{hashlib.sha256(path.encode()).hexdigest()[:32]}"'
    headers = {"Content-Length": str(FILE_BYTES), "ETag": tag, "Accept-Ranges": "bytes"}
    if method == "HEAD":
        return Answer(200, "OK", headers)
    if not byte_range:
        return Answer(200, "OK", headers, content(path))
    first, _, last = byte_range.partition("-")
    part = content(path)[int(first) : int(last) + 1]
    shown = f"bytes {first}-{int(first) + len(part) - 1}/{FILE_BYTES}"
    return Answer(206, "Partial Content", {**headers, "Content-Length": str(len(part)), "Content-Range": shown}, part)
