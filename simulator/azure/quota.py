"""vCPU quota per region and VM family. Spot has a separate quota (`lowPriorityCores`), as in Microsoft.Compute."""

from __future__ import annotations

from config.data import skus
from simulator.azure import reservations
from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request, conflict
from simulator.azure.ids import ResourceId
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body

SPOT, TOTAL = "lowPriorityCores", "cores"
_DISPLAYED = {SPOT: "Total Regional Low-priority vCPUs", TOTAL: "Total Regional vCPUs"}
"""Azure's display names. Spot nodes count only against the quota `SPOT`.

Sources: https://github.com/Azure/azure-cli (vm/tests/latest/recordings/test_vm_usage.yaml),
https://learn.microsoft.com/azure/quotas/spot-quota
"""
_NETWORK_LIMITS = {"Virtual Networks": 1000, "Public IP Addresses": 1000, "Nat Gateways": 1000, "Route Tables": 200}
"""Limits per region, only for lists (Azure/azure-cli, network/tests/latest/recordings/test_network_usage_list.yaml)."""
_POOLS = "Microsoft.ContainerService/managedClusters/agentPools"
_MORE = (
    "If you want to increase the quota, please follow this instruction: "
    "https://learn.microsoft.com/en-us/azure/quotas/view-quotas. Surge nodes would also consume vcpu quota, please "
    "consider use smaller maxSurge or use maxUnavailable to proceed upgrade without surge nodes, details: "
    "aka.ms/aks/maxUnavailable."
)


def check(
    world: World,
    resource: ResourceId,
    location: str,
    sku: skus.VmSku,
    properties: Body,
    *,
    surge: int = 0,
    compute: bool = False,
) -> None:
    """Raises ArmError if the pool's nodes plus the `surge` nodes of an upgrade exceed the remaining quota.

    With `compute`, the error is Microsoft.Compute's (for the autoscaler), else AKS's.
    """
    family = SPOT if properties.get("scaleSetPriority") == "Spot" else sku.family
    machines = properties["count"] + surge
    wanted = max(machines - reservations.free(world, properties, resource), 0) * sku.vcpus
    before = usages(world, location, without=None)
    used = usages(world, location, without=resource)
    own = before.get(family, 0) - used.get(family, 0)
    names = (family,) if family == SPOT else (family, TOTAL)
    for name in names:
        limit = world.subscription.quota.get(name, 0)
        if wanted > own and wanted > limit - used.get(name, 0):  # a pool that does not grow is always allowed
            if compute:
                raise _of_compute(name, location, limit, before.get(name, 0), wanted - own)
            raise _of_aks(name, location, max(limit - used.get(name, 0), 0), wanted)


def _of_aks(name: str, location: str, left: int, wanted: int) -> ArmError:
    """Sources: Azure/karpenter-provider-azure#192, user reports of 2025 and 2026."""
    what = f"Insufficient vcpu quota requested {wanted}, remaining {left} for family {name} for region {location}."
    if name == TOTAL:
        left_there = f"left regional vcpu quota {left}, requested quota {wanted}."
        what = f"Insufficient regional vcpu quota left for location {location}. {left_there}"
    return bad_request(f"{what} {_MORE}", code="ErrCode_InsufficientVCPUQuota")


def _of_compute(name: str, location: str, limit: int, used: int, wanted: int) -> ArmError:
    """Source: Azure/AKS#5808."""
    what = "Total Regional Cores" if name == TOTAL else "LowPriorityCores" if name == SPOT else f"{name} Cores"
    message = (
        f"Operation could not be completed as it results in exceeding approved {what} quota. Additional details - "
        f"Deployment Model: Resource Manager, Location: {location}, Current Limit: {limit}, Current Usage: {used}, "
        f"Additional Required: {wanted}, (Minimum) New Limit Required: {used + wanted}. Setup Alerts when Quota "
        "reaches threshold. Learn more at https://aka.ms/quotamonitoringalerting ."
    )
    return conflict(message, code="OperationNotAllowed")


def usages(world: World, location: str, without: ResourceId | None) -> dict[str, int]:
    """Returns a region's used cores by family, without those of the pool `without`. Unused reservations count too."""
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


def view(world: World, request: PathRequest) -> Body:
    """Returns vCPU usages (Usage_List of Microsoft.Compute)."""
    used = usages(world, request["region"].lower(), without=None)
    limits = world.subscription.quota.items()
    return {"value": [_usage(name, _DISPLAYED.get(name, name), used.get(name, 0), limit) for name, limit in limits]}


def networks(world: World, request: PathRequest) -> Body:
    """Returns usages of simulated network types (Usages_List of Microsoft.Network)."""
    region, listed = request["region"].lower(), []
    above = f"/subscriptions/{world.subscription.subscription_id}/providers/Microsoft.Network/locations/{region}/usages"
    for text, limit in _NETWORK_LIMITS.items():
        name = text.replace(" ", "")
        there = world.store.all(f"Microsoft.Network/{name}")
        usage = _usage(name, text, sum(each.body["location"] == region for each in there), limit)
        listed.append({"id": f"{above}/{name}", **usage})
    return {"value": listed}


def _usage(name: str, text: str, used: int, limit: int) -> Body:
    return {"name": {"value": name, "localizedValue": text}, "unit": "Count", "currentValue": used, "limit": limit}
