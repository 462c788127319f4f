"""vCPU quota: the vCPUs that an update adds in a region, and the subscription's limits.

Azure counts the vCPUs of each VM family and of all families (`cores`). Spot nodes count only as `lowPriorityCores`
(Microsoft, "Increase spot vCPU family quotas"). The limits come from Microsoft.Compute/locations/usages
(azure-rest-api-specs, Usage_List).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import hexdigits

from config.data.skus import VmSku, catalogue
from config.problems.fixes import Path, set_command
from config.rules.subscription import Json, Objection
from config.schema.jump_box import JumpBoxSettings
from config.schema.models import Settings
from config.schema.pools import SUFFIX_LENGTH, PoolSettings, agent_pool_name
from config.schema.regions import cloud

SPOT, TOTAL = "lowPriorityCores", "cores"
_PAGE = "/#view/Microsoft_Azure_Capacity/QuotaMenuBlade/~/myQuotas"


@dataclass(frozen=True)
class Nodes:
    size: str
    count: int
    spot: bool = False
    version: str = ""


@dataclass(frozen=True)
class Growth:
    """The nodes that an update adds to a pool."""

    pool: str
    sku: VmSku
    spot: bool
    key: Path
    there: int
    now: int
    """Nodes that the update adds, without reserved nodes, which the quota already counts, used or not."""
    later: int
    new: bool
    replaced: Nodes | None = None
    first: bool = False
    surge: int = 0

    def __str__(self) -> str:
        nodes = "node" if self.at_once == 1 else "nodes"
        why = " with the surge node of its upgrade" if self.surge else ""
        return f"{self.at_once} {'more ' if self.there else ''}{nodes} of {self.sku.name}{why}"

    @property
    def at_once(self) -> int:
        return self.now + self.surge

    @property
    def quotas(self) -> tuple[str, ...]:
        return _quotas(self.sku, spot=self.spot)

    def freed(self, quota: str) -> int:
        old = self.replaced
        size = old and next((sku for name, sku in catalogue().items() if name.lower() == old.size.lower()), None)
        return old.count * size.vcpus if old and size and quota in _quotas(size, spot=old.spot) else 0


@dataclass(frozen=True)
class _Usage:
    limit: int
    left: int


def growths(
    settings: Settings, there: Mapping[str, Nodes], system_pool: str, reserved: Mapping[str, int]
) -> list[Growth]:
    """Returns the growth of all pools that are new or grow. `there` maps ARM names of pools to their existing nodes.

    `reserved` maps keys of pools to the number of reserved nodes.
    """
    found = [_system_growth(settings, there.get(system_pool), system_pool)]
    found += [_growth(settings, key, pool, there, reserved.get(key, 0)) for key, pool in settings.gpu_pools().items()]
    if settings.network.jump_box and not there:
        found.append(_jump_box_growth(settings.network.jump_box))
    return [each for each in found if each.new or each.at_once or each.later]


def _system_growth(settings: Settings, has: Nodes | None, name: str) -> Growth:
    pool, count = settings.cluster.system_pool, has.count if has else 0
    key: Path = ("cluster", "systemPool", "count")
    return Growth(f"pool {name}", pool.sku, False, key, count, max(pool.count - count, 0), 0, has is None)


def _jump_box_growth(chosen: JumpBoxSettings) -> Growth:
    """Returns the growth for a jump box that is created with the cluster. A later jump box is not checked."""
    return Growth("the jump box", catalogue()[chosen.vm_sku], False, ("network", "jumpBox", "vmSku"), 0, 1, 0, True)


def _growth(settings: Settings, key: str, pool: PoolSettings, there: Mapping[str, Nodes], reserved: int) -> Growth:
    has = there.get(agent_pool_name(key, pool))
    count = has.count if has else 0
    wanted = max(count, pool.min_nodes) if pool.autoscale else pool.count
    free = max(reserved - count, 0)
    now = max(wanted - count - free, 0)
    return Growth(
        pool=f"pool {key}",
        sku=pool.sku,
        spot=pool.spot,
        key=("nodeCount",) if settings.vm_sku else ("pools", key, *pool.count_key),
        there=count,
        now=now,
        later=max(pool.max_nodes - max(count, wanted) - max(free - max(wanted - count, 0), 0), 0),
        new=has is None,
        replaced=None if has else next((old for name, old in there.items() if _is_of(key, name)), None),
        first=pool.replace == "delete-first",
        surge=_surge(settings, pool, has),
    )


def _surge(settings: Settings, pool: PoolSettings, has: Nodes | None) -> int:
    """Returns the number of surge nodes of an upgrade. Without quota for them, AKS rejects the upgrade
    (ErrCode_InsufficientVCPUQuota).

    Spot pools and pools with InfiniBand have none (components/azure/node_pools.py).
    """
    upgraded = has and has.count and has.version and not is_version(has.version, settings.cluster.kubernetes_version)
    return 1 if upgraded and not pool.spot and pool.sku.infiniband is None else 0


def is_version(version: str, wanted: str) -> bool:
    return f"{version}.".startswith(f"{wanted}.")


def _is_of(key: str, name: str) -> bool:
    return name[:-SUFFIX_LENGTH] == key and set(name[-SUFFIX_LENGTH:]) <= set(hexdigits)


def _quotas(sku: VmSku, *, spot: bool) -> tuple[str, ...]:
    return (SPOT,) if spot else (sku.family, TOTAL)


def quota_objections(growing: Sequence[Growth], answer: Json, settings: Settings) -> Iterator[Objection]:
    """Yields missing quota: an error for nodes of this update, a warning for nodes that the autoscaler may add."""
    usages, region = dict(_usages(answer)), settings.location
    more = [growth for growth in growing if growth.at_once or growth.later]
    by_name = {name: [growth for growth in more if name in growth.quotas] for name in _names(more)}
    lefts = {
        name: usage.left + sum(growth.freed(name) for growth in mine if growth.first)
        for name, mine in by_name.items()
        if (usage := usages.get(_plain(name)))
    }
    for name, mine in by_name.items():
        usage = usages.get(_plain(name))
        if usage is None:
            yield Objection(f"vCPU quota {name} could not be read: Azure lists no quota with that name", stops=False)
            continue
        left = lefts[name]
        now = sum(growth.at_once * growth.sku.vcpus for growth in mine)
        most = now + sum(growth.later * growth.sku.vcpus for growth in mine)
        free = max(left, 0)
        if now > free:
            what = f"{_needed(now, name, mine, region)}, and {free} of {usage.limit} are left"
            fewer, instead = _fewer(mine, lefts, settings.stack), _instead(mine, name, left, settings)
            yield Objection(what, (*_steps(region), *fewer, *instead))
        elif most > free:
            who = ", ".join(growth.pool for growth in mine if growth.later)
            what = f"{most} vCPUs of quota {name} may be needed in {region} (autoscaler of {who}), and {free} are left"
            yield Objection(what, _steps(region), stops=False)


def _usages(answer: Json) -> Iterator[tuple[str, _Usage]]:
    for usage in answer.get("value", ()):
        name, limit = str((usage.get("name") or {}).get("value", "")), int(usage.get("limit", 0))
        yield _plain(name), _Usage(limit, limit - int(usage.get("currentValue", 0)))


def _plain(family: str) -> str:
    """Returns a comparable name, because Azure writes a family in any case, with and without spaces."""
    return family.replace(" ", "").lower()


def _needed(vcpus: int, quota: str, growing: Sequence[Growth], region: str) -> str:
    who = ", ".join(f"{growth.pool}: {growth}" for growth in growing if growth.at_once)
    return f"{vcpus} vCPUs of quota {quota} are needed in {region} ({who})"


def _steps(region: str) -> tuple[str, ...]:
    return (f"az vm list-usage --location {region} --output table", f"{cloud(region).portal}{_PAGE}    # request more")


def _names(growing: Sequence[Growth]) -> list[str]:
    return sorted(dict.fromkeys(name for growth in growing for name in growth.quotas), key=lambda name: name == TOTAL)


def _fewer(growing: Sequence[Growth], lefts: Mapping[str, int], stack: str) -> Iterator[str]:
    (growth, *others) = [each for each in growing if each.at_once]
    free = min(max(lefts[name], 0) for name in growth.quotas if name in lefts)
    fit = growth.there + free // growth.sku.vcpus - growth.surge
    if fit > 0 and not others:
        yield f"{set_command(growth.key, fit).text(stack)}    # or fewer nodes"


def _instead(growing: Sequence[Growth], quota: str, left: int, settings: Settings) -> Iterator[str]:
    waiting = [each for each in growing if each.replaced and not each.first and each.freed(quota)]
    now = sum(each.at_once * each.sku.vcpus for each in growing)
    if settings.vm_sku is None and waiting and left + sum(each.freed(quota) for each in waiting) >= now:
        for each in waiting:
            path: Path = ("pools", each.key[1], "replace")
            yield f"{set_command(path, 'delete-first').text(settings.stack)}    # or delete the old pool first"
