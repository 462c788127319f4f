"""Azure's list prices, in US dollars per hour, from `prices.yaml`, which has sources and dates."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from math import inf

from pydantic import BaseModel, ConfigDict

from config.data import data
from config.data.skus import catalogue


class PriceList(BaseModel):
    """Pay-as-you-go list prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    as_of: str
    currency: str
    region: str
    """The region for prices that are unknown in the stack's region."""
    hours_per_month: int
    vms: dict[str, dict[str, float]]
    """The price per hour, by VM size and region."""
    vcpus: dict[str, dict[str, float]]
    """The price of a vCPU by quota family and region (sizes without GPUs)."""
    disks: dict[int, float]
    """The price per month, by the tier's maximum size in GiB."""
    control_plane: dict[str, float]
    """The price per hour, by tier."""
    registry_per_day: dict[str, float]
    load_balancer: float
    public_address: float
    nat_gateway: float
    private_endpoint: float

    def node(self, size: str, region: str) -> float | None:
        """Returns the hourly price of a node without its disk; None if unknown."""
        known, vcpus = self.of_size(size)
        price = known.get(region, known.get(self.region))
        return None if price is None else round(price * vcpus, 6)

    def of_size(self, size: str) -> tuple[dict[str, float], int]:
        """Returns prices by region, and the factor for a node: 1, or its number of vCPUs if the prices are per vCPU."""
        found = catalogue().get(size)
        if size in self.vms or found is None:
            return self.vms.get(size, {}), 1
        return self.vcpus.get(found.family, {}), found.vcpus

    def disk(self, gib: int) -> float | None:
        """Returns the hourly price of a managed disk of this size; None if it exceeds all tiers."""
        tier = min((most for most in self.disks if most >= gib), default=None)
        return None if tier is None else self.disks[tier] / self.hours_per_month

    def registry(self, tier: str) -> float:
        """Returns the hourly price of a registry, without storage above the included amount."""
        return self.registry_per_day[tier] / 24


def by_price(sizes: Iterable[str]) -> str:
    prices = price_list()
    each = sorted((prices.node(size, prices.region) or inf, size) for size in sizes)
    listed = ", ".join(size if price == inf else f"{size} (${price:,.2f})" for price, size in each)
    return f"{listed}, per node and hour in {prices.region}"


@functools.cache
def price_list() -> PriceList:
    return PriceList.model_validate(data.read("prices.yaml"))
