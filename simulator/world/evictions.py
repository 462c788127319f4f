"""Evictions of Spot machines: `python -m simulator evict` requests them, the daemon performs them.

Each eviction and the rate have separate files, so that no process overwrites the request of another process.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from simulator.host import files, paths

_RATE = "rate"
"""The name of the rate's file. Other files are named after nodes (`aks-...`)."""


@dataclass(frozen=True, order=True)
class Eviction:
    """The eviction of one node. If `drains` is True, AKS drains the node in time, which Azure does not guarantee."""

    node: str
    drains: bool = True


@dataclass(frozen=True)
class Rate:
    """The Spot nodes to evict per hour. The seed decides the times and the nodes."""

    per_hour: float
    seed: int = 0
    drains: bool = True


class EvictionStore:
    """Requested evictions that have not ended, stored on disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = (folder or paths.home()) / "evictions"

    def all(self) -> list[Eviction]:
        found = [file for file in self._folder.glob("*.json") if file.stem != _RATE]
        return sorted(Eviction(**json.loads(file.read_text())) for file in found)

    def ask(self, eviction: Eviction) -> None:
        self._write(eviction.node, eviction)

    def over(self, node: str) -> None:
        self._file(node).unlink(missing_ok=True)

    def rate(self) -> Rate | None:
        file = self._file(_RATE)
        return Rate(**json.loads(file.read_text())) if file.exists() else None

    def set_rate(self, rate: Rate | None) -> None:
        """Sets the rate. None ends random evictions."""
        if rate:
            self._write(_RATE, rate)
        else:
            self.over(_RATE)

    def _write(self, name: str, value: Eviction | Rate) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        files.replace(self._file(name), json.dumps(asdict(value)))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
