"""A log of blobs that users wrote or deleted since the simulator's start, by container.

Mounts are copies. Without the log, they would list the whole container for each pod
(`simulator/kubelet/csi/contents.py`).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

_ALL = ""
"""The blob name in an entry that stands for all blobs."""


class Changes:
    """The log. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, list[tuple[str, str | None]]] = defaultdict(list)

    def record(self, path: str, etag: str | None) -> None:
        """Logs a write to `/<account>/<container>/<blob>` with the blob's new etag.

        The etag is None for a deleted blob, and empty if unknown. A path without a blob (a batch request) means that
        any blob may have changed.
        """
        account, container, name = [*path.strip("/").split("/", 2), "", ""][:3]
        with self._lock:
            self._entries[f"{account}/{container}"].append((name, etag))

    def since(self, account: str, container: str, count: int) -> tuple[int, Mapping[str, str | None] | None]:
        """Returns the end position of a container's log, and the last etag of each blob after position `count`.

        The second value is None if any blob may have changed, and always for position 0.
        """
        with self._lock:
            entries = self._entries[f"{account}/{container}"]
            total, names = len(entries) + 1, dict(entries[max(0, count - 1) :])
        return total, None if count == 0 or _ALL in names else names
