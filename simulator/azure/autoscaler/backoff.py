"""A pool's backoff after a failed scale-up (cluster-autoscaler/utils/backoff)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from simulator.azure.autoscaler.profile import PACE

FIRST_S, MOST_S = 5 * 60 / PACE, 30 * 60 / PACE
"""Upstream's --initial-node-group-backoff-duration and --max-node-group-backoff-duration (AKS's page: 30m)."""
_FORGOTTEN_S = 3 * 3600 / PACE
"""Upstream's --node-group-backoff-reset-timeout."""


@dataclass(frozen=True)
class Refusal:
    """A scale-up's error, with the backoff's duration."""

    code: str
    message: str
    at: float
    lasts_s: float

    @property
    def until(self) -> float:
        return self.at + self.lasts_s


class Backoff:
    """Backoffs by scale set. Times are in seconds of one clock."""

    def __init__(self) -> None:
        self._refusals: dict[str, Refusal] = {}

    def refused(self, group: str, code: str, message: str, now: float) -> None:
        """Starts a backoff. If a previous backoff has expired, the new one is twice as long."""
        before, lasts = self._refusals.get(group), FIRST_S
        if before and before.until < now:
            lasts = min(2 * before.lasts_s, MOST_S)
        self._refusals[group] = Refusal(code, message, now, lasts)

    def of(self, group: str, now: float) -> Refusal | None:
        """Returns the error of the current backoff, or None."""
        found = self._refusals.get(group)
        return found if found and found.until > now else None

    def keep(self, groups: Collection[str], now: float) -> None:
        """Keeps only recent errors of `groups`, because disabling autoscaling resets the backoff (AKS's page)."""
        self._refusals = {
            group: refusal
            for group, refusal in self._refusals.items()
            if group in groups and now < refusal.at + _FORGOTTEN_S
        }
