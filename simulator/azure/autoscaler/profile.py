"""The autoscaler profile of a cluster: its settings, AKS's defaults, and how fast time passes here."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.data import data

PACE = 20.0
"""How much sooner the autoscaler's patience ends: ten minutes are half a minute. What pods do takes its own time."""
START_UP_PACE = 3.0
"""The same for new nodes, which take their own time to start: fifteen minutes are five."""
_START_UP = "15m"
"""How long a node may take to become ready; AKS's profile has no such setting (--max-node-startup-time)."""
LEAST_INTERVAL_S = 2.0
"""Between looks, whatever the profile says: each costs a reckoning of all pods."""
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Profile:
    """`given` are the properties of the cluster's `autoScalerProfile`, by ARM's names."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._values = {**_defaults(), **(given or {})}

    @property
    def expander(self) -> str:
        return str(self._values["expander"])

    def patience_s(self, name: str) -> float:
        """A time of the profile, as it passes here."""
        return seconds(str(self._values[name])) / PACE

    @property
    def start_up_s(self) -> float:
        """How long a registered node may take to become ready."""
        return seconds(_START_UP) / START_UP_PACE

    @property
    def provision_s(self) -> float:
        """How long a scale-up may take until its nodes are ready."""
        return seconds(str(self._values["max-node-provision-time"])) / START_UP_PACE

    def number(self, name: str) -> float:
        return float(self._values[name])

    def holds(self, name: str) -> bool:
        """ARM has some of these as text."""
        return str(self._values[name]).lower() == "true"

    @property
    def interval_s(self) -> float:
        return max(self.patience_s("scan-interval"), LEAST_INTERVAL_S)

    @property
    def after_delete_s(self) -> float:
        name = "scale-down-delay-after-delete"
        return self.patience_s(name) if name in self._values else self.interval_s


def seconds(text: str) -> float:
    """Of `10m`, `30s`, `2h` or `10`. Raises ValueError."""
    found = re.fullmatch(r"(\d+)([smh]?)", text)
    if not found:
        raise ValueError(f"{text!r} is no time, such as 10m")
    return float(found.group(1)) * _UNITS[found.group(2)]


@functools.cache
def _defaults() -> Mapping[str, Any]:
    found: Mapping[str, Any] = data.parsed(Path(__file__).with_name("profile.yaml").read_text())
    return found
