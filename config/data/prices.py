"""Azure's list prices, in US dollars per hour. The data, with its sources and dates, is in `prices.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from math import inf

from pydantic import BaseModel, ConfigDict

from config.data import data
from config.data.skus import catalogue


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
    vcpus: dict[str, dict[str, float]]
    """Of a vCPU by quota family and region, for sizes without GPUs."""
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
        known, vcpus = self.of_size(size)
        price = known.get(region, known.get(self.region))
        return None if price is None else round(price * vcpus, 6)

    def of_size(self, size: str) -> tuple[dict[str, float], int]:
        """Prices by region, and how many of them a node costs: one of its own, or one for each vCPU."""
        found = catalogue().get(size)
        if size in self.vms or found is None:
            return self.vms.get(size, {}), 1
        return self.vcpus.get(found.family, {}), found.vcpus

    def disk(self, gib: int) -> float | None:
        """A managed disk, by the tier that it fills; None where it is larger than all of them."""
        tier = min((most for most in self.disks if most >= gib), default=None)
        return None if tier is None else self.disks[tier] / self.hours_per_month

    def registry(self, tier: str) -> float:
        """A container registry, without what exceeds its included storage."""
        return self.registry_per_day[tier] / 24


def by_price(sizes: Iterable[str]) -> str:
    """Returns VM sizes with their list prices, the cheapest first."""
    prices = price_list()
    each = sorted((prices.node(size, prices.region) or inf, size) for size in sizes)
    listed = ", ".join(size if price == inf else f"{size} (${price:,.2f})" for price, size in each)
    return f"{listed}, per node and hour in {prices.region}"


@functools.cache
def price_list() -> PriceList:
    """The prices, read once."""
    return PriceList.model_validate(data.read("prices.yaml"))
