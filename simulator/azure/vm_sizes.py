"""VM sizes by region, in the shape of ListAvailableResourceSkusForARegion (Microsoft.Compute)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.data.skus import VmSku, catalogue
from simulator.azure.arm_world import World
from simulator.azure.errors import bad_request
from simulator.azure.rest import PathRequest
from simulator.azure.store import Body
from simulator.azure.subscription import Subscription

_FILTER = re.compile(r"location eq '(\w+)'")


def skus(world: World, request: PathRequest) -> Body:
    """Returns the VM sizes. Raises ArmError for a filter other than `location eq`."""
    subscription, chosen = world.subscription, request.query.get("$filter")
    match = _FILTER.fullmatch(chosen) if chosen else None
    if chosen and match is None:
        raise bad_request(f"The filter '{chosen}' is not supported; only location eq '<region>' is.")
    wanted = [match[1].lower()] if match else list(subscription.regions)
    regions = [region for region in wanted if region in subscription.regions]
    return {"value": [view for region in regions for view in _of_region(subscription, region)]}


def _of_region(subscription: Subscription, region: str) -> Iterator[Body]:
    for sku in catalogue().values():
        restricted = sku.family in subscription.restricted.get(region, ())
        if restricted or subscription.offers(sku, region):
            yield _size(sku, region, restricted=restricted)


def _size(sku: VmSku, region: str, *, restricted: bool) -> Body:
    where = {"type": "Location", "values": [region], "restrictionInfo": {"locations": [region]}}
    tier, _, size = sku.name.partition("_")
    numbers = {"vCPUs": sku.vcpus, "MemoryGB": sku.memory_gib, "GPUs": sku.gpus}
    return {
        "resourceType": "virtualMachines",
        "name": sku.name,
        "tier": tier,
        "size": size,
        "family": sku.family,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": [], "zoneDetails": []}],
        "capabilities": [{"name": name, "value": str(number)} for name, number in numbers.items() if number],
        "restrictions": [{**where, "reasonCode": "NotAvailableForSubscription"}] if restricted else [],
    }
