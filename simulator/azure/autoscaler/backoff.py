"""How long a pool is left alone after Azure has refused it nodes (cluster-autoscaler/utils/backoff)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from simulator.azure.autoscaler.profile import PACE

FIRST_S, MOST_S = 5 * 60 / PACE, 30 * 60 / PACE
"""Upstream's --initial- and --max-node-group-backoff-duration; AKS's page names the thirty minutes."""
_FORGOTTEN_S = 3 * 3600 / PACE
"""Upstream's --node-group-backoff-reset-timeout."""


@dataclass(frozen=True)
class Refusal:
    """What Azure said, when, and until when the pool is left alone."""

    code: str
    message: str
    at: float
    lasts_s: float

    @property
    def until(self) -> float:
        return self.at + self.lasts_s


class Backoff:
    """By a pool's scale set. Times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._refusals: dict[str, Refusal] = {}

    def refused(self, group: str, code: str, message: str, now: float) -> None:
        """Twice as long as the time before, unless that is not over yet."""
        before, lasts = self._refusals.get(group), FIRST_S
        if before and before.until < now:
            lasts = min(2 * before.lasts_s, MOST_S)
        self._refusals[group] = Refusal(code, message, now, lasts)

    def of(self, group: str, now: float) -> Refusal | None:
        """Why it is left alone; None where it is not."""
        found = self._refusals.get(group)
        return found if found and found.until > now else None

    def keep(self, groups: Collection[str], now: float) -> None:
        """Forgets old refusals, and pools that are not scaled any more: so AKS's page says to reset one."""
        self._refusals = {
            group: refusal
            for group, refusal in self._refusals.items()
            if group in groups and now < refusal.at + _FORGOTTEN_S
        }
