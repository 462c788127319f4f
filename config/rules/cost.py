"""The stack's hourly cost at Azure's list prices, for previews and updates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from config.data.jump_box import jump_box as jump_box_facts
from config.data.prices import price_list
from config.problems.fixes import path_text
from config.rules.vcpu_quota import Growth
from config.schema.cluster import SYSTEM_DISK_GB
from config.schema.models import Settings
from config.schema.pools import PoolSettings, agent_pool_name

_NOT_COUNTED = "not counted: blobs, traffic, volumes of workloads"


@dataclass(frozen=True)
class Item:
    """Identical items, each with this price per hour."""

    what: str
    each: float | None
    """US dollars per hour; None if unknown."""
    count: int = 1
    note: str = ""
    override: str = ""

    @property
    def total(self) -> float:
        return self.count * (self.each or 0.0)


@dataclass(frozen=True)
class Cost:
    items: tuple[Item, ...]

    @property
    def per_hour(self) -> float:
        return round(sum(item.total for item in self.items), 2)

    @property
    def unknown(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.each is None)

    def output(self) -> dict[str, Any]:
        """Returns the stack output, in US dollars per hour."""
        return {
            "perHour": self.per_hour,
            "currency": price_list().currency,
            "asOf": price_list().as_of,
            "resources": {item.what: round(item.total, 4) for item in self.items if item.each is not None},
            "unknown": [item.what for item in self.unknown],
        }

    def heading(self, before: Mapping[str, Any] | None) -> str:
        """Returns the sum as text; `before` is the stack output of the last update."""
        changed = before is not None and before["perHour"] != self.per_hour
        was = f", before ${before['perHour']:,.2f}" if before and changed else ""
        return f"${self.per_hour:,.2f} per hour{was} (Azure's list prices, {price_list().as_of})"

    def listing(self, before: Mapping[str, Any] | None) -> str:
        lines = [f"{self.heading(before)}:"]
        lines += [f"{f'${item.total:,.2f}':>12}  {_described(item)}" for item in self.items if item.each is not None]
        for item in self.unknown:
            ask = f" (pulumi config set --path {item.override} <USD per hour>)" if item.override else ""
            lines.append(f"{'unknown':>12}  {item.count} x {item.what}{ask}")
        return "\n".join([*lines, f"  {_NOT_COUNTED}"])


def hourly_cost(settings: Settings, node_counts: Mapping[str, int], *, within: bool = True) -> Cost:
    """Returns the cost of the stack's own platform. `node_counts` maps ARM names of pools to their current numbers of
    nodes.

    Excludes GPU pools if `within` is False: the first phase of a private network does not create them.
    """
    prices, system = price_list(), settings.cluster.system_pool
    pools = settings.gpu_pools() if within else {}
    items = [item for key, pool in pools.items() for item in _pool(settings, key, pool, node_counts)]
    items.append(_nodes(settings, "system pool", system.vm_sku, system.count))
    items.append(_disks("system pool", SYSTEM_DISK_GB, system.count))
    items.append(Item(f"control plane, {settings.cluster.tier}", prices.control_plane[settings.cluster.tier]))
    items.append(Item(f"registry, {settings.registry.sku}", prices.registry(settings.registry.sku)))
    items += _network(settings)
    items += _access_path(settings)
    return Cost(tuple(item for item in items if item.count))


def price_replaced_pools(settings: Settings, growing: Iterable[Growth]) -> Iterator[str]:
    old = [each.replaced for each in growing if each.replaced and each.replaced.count and not each.first]
    if not old:
        return
    prices = [(_price(settings, nodes.size)[0], nodes) for nodes in old]
    more = sum((price or 0.0) * nodes.count for price, nodes in prices)
    listed = ", ".join(f"{nodes.count} x {nodes.size}{'' if price else ', price unknown'}" for price, nodes in prices)
    yield f"  until the new pools are up, the old pools cost ${more:,.2f} more per hour, and use vCPU quota ({listed})"


def _access_path(settings: Settings) -> Iterator[Item]:
    if jump_box := settings.network.jump_box:
        yield _nodes(settings, "jump box", jump_box.vm_sku, 1)
        yield _disks("jump box", jump_box_facts().disk_gb, 1)
        yield Item("address of the Bastion", price_list().public_address)
        yield Item("Bastion, Standard", None)


def _pool(settings: Settings, key: str, pool: PoolSettings, node_counts: Mapping[str, int]) -> Iterator[Item]:
    count = node_counts.get(agent_pool_name(key, pool), pool.min_nodes) if pool.autoscale else pool.count
    name = f"{'Spot ' if pool.spot else ''}pool {key}"
    yield _nodes(settings, name, pool.vm_sku, count, pool)
    if pool.disk.type == "Managed":
        yield _disks(name, pool.disk.gb, count)


def _network(settings: Settings) -> Iterator[Item]:
    prices, network = price_list(), settings.network
    if not network.nat_gateway and not network.routed:
        yield Item("load balancer and its address", prices.load_balancer + prices.public_address)
    elif network.nat_gateway and network.address_space:
        yield Item("NAT gateway and its address", prices.nat_gateway + prices.public_address)
    yield Item("private endpoint", prices.private_endpoint, len(settings.entrances()))


def _nodes(settings: Settings, name: str, size: str, count: int, pool: PoolSettings | None = None) -> Item:
    """Returns the cost of nodes; for Spot nodes, the regular price as an upper limit."""
    each, note = _price(settings, size)
    most = "at most" if pool and pool.spot else ""
    grows = f"up to {pool.max_nodes} nodes" if pool and pool.max_nodes > count else ""
    notes = ", ".join(filter(None, [note, most, grows]))
    return Item(f"{name}: {size}", each, count, notes, override=path_text(("prices", size)))


def _price(settings: Settings, size: str) -> tuple[float | None, str]:
    if size in settings.prices:
        return settings.prices[size], "your price"
    prices = price_list()
    elsewhere = settings.location not in prices.of_size(size)[0]
    return prices.node(size, settings.location), f"price of {prices.region}" if elsewhere else ""


def _disks(name: str, gib: int, count: int) -> Item:
    return Item(f"{name}: OS disk of {gib} GB", price_list().disk(gib), count)


def _described(item: Item) -> str:
    count = "" if item.count == 1 else f"{item.count} x "
    return f"{count}{item.what}" + (f" ({item.note})" if item.note else "")
