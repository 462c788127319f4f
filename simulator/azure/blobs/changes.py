"""Which blobs users have written to or removed, container by container, since the simulator began.

Real blob storage tells nobody of that so soon. It spares simulated mounts, which are copies, from listing their whole
container for each pod (`simulator/kubelet/csi/contents.py`).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

_ALL = ""
"""In place of a blob's name: any of them may be other."""


class Changes:
    """May be told and asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, list[tuple[str, str | None]]] = defaultdict(list)

    def tell(self, path: str, etag: str | None) -> None:
        """Of a request that is no read: `/<account>/<container>/<blob>`, and the etag that the blob has now.

        None of one that was removed. Where the etag is empty only a look tells; without a blob's name, as of a batch of
        requests, all may be other.
        """
        account, container, name = [*path.strip("/").split("/", 2), "", ""][:3]
        with self._lock:
            self._told[f"{account}/{container}"].append((name, etag))

    def since(self, account: str, container: str, count: int) -> tuple[int, Mapping[str, str | None] | None]:
        """How often it was told of a container, and the last etags of the names told after the first `count` times.

        None where all of them may be other, as at first.
        """
        with self._lock:
            told = self._told[f"{account}/{container}"]
            total, names = len(told) + 1, dict(told[max(0, count - 1) :])
        return total, None if count == 0 or _ALL in names else names
