"""vCPU quota per region and VM family; Spot counts apart (`lowPriorityCores`), as Microsoft.Compute's usages do."""

from __future__ import annotations

from config.facts import skus
from config.rules.vcpu_quota import SPOT, TOTAL
from simulator.azure import reservations
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.ids import ResourceId
from simulator.azure.store import Body

_POOLS = "Microsoft.ContainerService/managedClusters/agentPools"


def check(
    world: World, resource: ResourceId, location: str, sku: skus.VmSku, properties: Body, *, surge: int = 0
) -> None:
    """Raises ArmError if the pool's nodes, with `surge` more of an upgrade, are more than the quota has left."""
    family = SPOT if properties.get("scaleSetPriority") == "Spot" else sku.family
    machines = properties["count"] + surge
    wanted = max(machines - reservations.free(world, properties, resource), 0) * sku.vcpus
    before = usages(world, location, without=None)
    used = usages(world, location, without=resource)
    own = before.get(family, 0) - used.get(family, 0)
    names = (family,) if family == SPOT else (family, TOTAL)
    for name in names:
        remaining = world.subscription.quota.get(name, 0) - used.get(name, 0)
        if wanted > own and wanted > remaining:  # what is there already may stay
            message = (
                f"Insufficient vcpu quota requested {wanted}, remaining {max(remaining, 0)} for family {name} "
                f"for region {location}. Surge nodes would also consume vcpu quota. Please request more quota "
                "(https://aka.ms/aks/quotas-skus-regions), ask for fewer nodes or use another VM size."
            )
            raise bad_request(message, code="ErrCode_InsufficientVCPUQuota")


def usages(world: World, location: str, without: ResourceId | None) -> dict[str, int]:
    """Cores in use in a region by family, not counting one pool. What is reserved counts whether it is used or not."""
    used: dict[str, int] = {}
    unused: dict[tuple[str, str], int] = {}
    for group, size, machines in reservations.reserved(world, location):
        unused[group, size] = machines
        _add(used, skus.sku(size), machines)
    for pool in world.store.all(_POOLS):
        if pool.facts.get("location") != location or pool.id == without:
            continue
        properties = pool.properties
        sku = skus.sku(properties["vmSize"])
        taken = reservations.taken(properties, unused)
        _add(used, sku, properties["count"] - taken, spot=properties.get("scaleSetPriority") == "Spot")
    return used


def _add(used: dict[str, int], sku: skus.VmSku, machines: int, *, spot: bool = False) -> None:
    for name in (SPOT,) if spot else (sku.family, TOTAL):
        used[name] = used.get(name, 0) + machines * sku.vcpus


def view(world: World, location: str) -> Body:
    """The answer of Microsoft.Compute/locations/usages."""
    used = usages(world, location, without=None)
    return {
        "value": [
            {
                "name": {"value": name, "localizedValue": name},
                "unit": "Count",
                "currentValue": used.get(name, 0),
                "limit": limit,
            }
            for name, limit in world.subscription.quota.items()
        ]
    }
