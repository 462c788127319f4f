"""Which Spot machines Azure is to take back: `python -m simulator evict` asks, and the daemon does it.

A file for each, and one for the rate, so that nobody writes what another has just written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from simulator.host import files, paths

_RATE = "rate"
"""No node is called so: they are `aks-...`."""


@dataclass(frozen=True, order=True)
class Eviction:
    """Of one node. `drains` is whether AKS drains it in time, which it promises for no case."""

    node: str
    drains: bool = True


@dataclass(frozen=True)
class Rate:
    """How many of all Spot nodes are evicted in an hour; the seed decides when, and which."""

    per_hour: float
    seed: int = 0
    drains: bool = True


class EvictionStore:
    """What is asked for and not over, on disk."""

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
        """None for no more than are asked for."""
        if rate:
            self._write(_RATE, rate)
        else:
            self.over(_RATE)

    def _write(self, name: str, value: Eviction | Rate) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        files.replace(self._file(name), json.dumps(asdict(value)))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
