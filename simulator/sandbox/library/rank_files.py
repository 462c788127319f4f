"""Files that a rank writes while mpirun plays its framework elsewhere.

mpirun publishes the newest lines (as "lines"); the rank's sshd finds them in the world and appends what it has not yet.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from simulator.sandbox.library import world

NAME = "lines"
KEPT = 100
"""Lines that are published at a time: those of 20 seconds, when the world is shown every second or so."""


class Writer:
    """Appends lines to some files of a pod, to each the same."""

    def __init__(self, pod: world.Pod, files: Sequence[str]) -> None:
        self._pod, self._files = pod, list(files)
        self._id, self._count = time.time_ns(), 0
        self._newest: deque[str] = deque(maxlen=KEPT)

    def append(self, line: str) -> None:
        """Raises OSError where the files are in this very pod and cannot be written."""
        if not self._files:
            return
        self._count += 1
        self._newest.append(line)
        if self._pod.key == world.load_self()["pod"]:
            _append(self._files, [line])
        else:
            lines = {"id": self._id, "count": self._count, "newest": list(self._newest)}
            world.tell(NAME, {"pod": self._pod.key, "files": self._files, **lines})


class Follower:
    """Of the pod whose files they are."""

    def __init__(self) -> None:
        self._written: dict[int, int] = {}

    def take(self, known: world.World) -> None:
        """Writes what was published since. Raises OSError."""
        for pod in known.pods.values():
            said = pod.said(NAME)
            if not said or said["pod"] != known.me.key or pod.namespace != known.me.namespace:
                continue
            missing = said["count"] - self._written.get(said["id"], 0)
            if missing > 0:
                _append(said["files"], said["newest"][-missing:])
                self._written[said["id"]] = said["count"]


def _append(files: Sequence[str], lines: Sequence[str]) -> None:
    for name in files:
        with Path(name).open("a") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
