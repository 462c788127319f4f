"""Azure's list prices, in US dollars per hour. The data, with its sources and dates, is in `prices.yaml`."""

from __future__ import annotations

import functools

from pydantic import BaseModel, ConfigDict

from config.facts import data


class PriceList(BaseModel):
    """List prices of pay as you go."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    as_of: str
    currency: str
    region: str
    """Whose prices stand for a region that a size has none of."""
    hours_per_month: int
    vms: dict[str, dict[str, float]]
    """By VM size and region, an hour."""
    disks: dict[int, float]
    """By the most GiB of each tier, a month."""
    control_plane: dict[str, float]
    """By tier, an hour."""
    registry_per_day: dict[str, float]
    """By tier."""
    load_balancer: float
    public_address: float
    nat_gateway: float
    private_endpoint: float

    def node(self, size: str, region: str) -> float | None:
        """A node of a VM size, without its disk; None where there is no list price."""
        known = self.vms.get(size, {})
        return known.get(region, known.get(self.region))

    def disk(self, gib: int) -> float | None:
        """A managed disk, by the tier that it fills; None where it is larger than all of them."""
        tier = min((most for most in self.disks if most >= gib), default=None)
        return None if tier is None else self.disks[tier] / self.hours_per_month

    def registry(self, tier: str) -> float:
        """A container registry, without what exceeds its included storage."""
        return self.registry_per_day[tier] / 24


@functools.cache
def price_list() -> PriceList:
    """The prices, read once."""
    return PriceList.model_validate(data.read("prices.yaml"))
