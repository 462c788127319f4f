"""A cluster's autoscaler profile: settings, AKS's defaults, and the simulator's time scale."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.data import data

PACE = 20.0
"""The factor that shortens delays: ten minutes become half a minute. Pods run in real time."""
START_UP_PACE = 3.0
"""The factor that shortens time limits of new nodes: 15 minutes become 5. Nodes start in real time."""
_START_UP = "15m"
"""The time limit for a registered node to become ready (--max-node-startup-time). AKS's profile cannot set it."""
LEAST_INTERVAL_S = 2.0
"""The minimum scan interval, whatever the profile, because each scan processes all pods."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Profile:
    """A cluster's `autoScalerProfile` with AKS's defaults. The keys of `given` are ARM's names."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._values = {**_defaults(), **(given or {})}

    @property
    def expander(self) -> str:
        return str(self._values["expander"])

    def duration_s(self, name: str) -> float:
        return seconds(str(self._values[name])) / PACE

    @property
    def start_up_s(self) -> float:
        return seconds(_START_UP) / START_UP_PACE

    @property
    def provision_s(self) -> float:
        """The time limit for a scale-up's nodes to become ready."""
        return seconds(str(self._values["max-node-provision-time"])) / START_UP_PACE

    def number(self, name: str) -> float:
        return float(self._values[name])

    def is_true(self, name: str) -> bool:
        """Returns a boolean setting. Some boolean settings are strings in ARM."""
        return str(self._values[name]).lower() == "true"

    @property
    def interval_s(self) -> float:
        return max(self.duration_s("scan-interval"), LEAST_INTERVAL_S)

    @property
    def after_delete_s(self) -> float:
        name = "scale-down-delay-after-delete"
        return self.duration_s(name) if name in self._values else self.interval_s


def seconds(text: str) -> float:
    """Parses a duration (`10m`, `30s`, `2h`, `10`). Raises ValueError."""
    found = re.fullmatch(r"(\d+)([smh]?)", text)
    if not found:
        raise ValueError(f"{text!r} is not a duration, such as 10m")
    return float(found.group(1)) * _UNITS[found.group(2)]


@functools.cache
def _defaults() -> Mapping[str, Any]:
    found: Mapping[str, Any] = data.parsed(Path(__file__).with_name("profile.yaml").read_text())
    return found
