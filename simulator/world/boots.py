"""Reboots of nodes. `python -m simulator reboot` records a reboot; emulated machines and pods react."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from simulator.host import files, paths


class BootStore:
    """The last reboot of each node, on disk."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since 1970."""
        self._file = (folder or paths.home()) / "boots.json"
        self._clock = clock

    def last(self, node: str) -> float:
        """Returns the time of the last reboot in seconds since 1970, or 0 without a reboot."""
        return self._load().get(node, 0.0)

    def boot(self, node: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(self._file, json.dumps({**self._load(), node: self._clock()}))

    def _load(self) -> dict[str, float]:
        try:
            found: dict[str, float] = json.loads(self._file.read_text())
        except FileNotFoundError:
            return {}
        return found
