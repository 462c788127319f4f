"""What the user breaks in Azure itself (`python -m simulator fault throttle|capacity|roles`), in Azure's words.

Throttling: Azure's page "Understand how Azure Resource Manager throttles requests"; the text is in reports of it
(aka.ms/arm-throttling). Capacity: AKS's page on ZonalAllocationFailed and AllocationFailed, and Azure/AKS#1272. Roles:
Azure's page "Troubleshoot Azure RBAC", which gives assignments up to ten minutes, and its section on new principals.
"""

from __future__ import annotations

import math
from http import HTTPStatus

from simulator.azure.errors import ArmError, conflict
from simulator.azure.store import Record
from simulator.azure.world import World
from simulator.world.faults import FaultKind

CREATED = "created"
"""Of a record's facts: when it was made, in seconds since 1970."""
_READS = ("GET", "HEAD")


def check_rate(world: World, method: str) -> None:
    """Raises ArmError (429) with the seconds to wait, while requests are throttled."""
    fault = world.faults.find(FaultKind.THROTTLE)
    if fault is None:
        return
    kind = "read" if method in _READS else "delete" if method == "DELETE" else "write"
    who = f"subscription '{world.subscription.subscription_id}' actor '{world.subscription.object_id}'"
    seconds = max(1, math.ceil(fault.remaining(world.faults.clock())))
    message = (
        f"Number of '{kind}' requests for {who} exceeded. Please try again after '{seconds}' seconds after additional "
        "tokens are available. Refer to https://aka.ms/arm-throttling for additional information."
    )
    code = "SubscriptionRequestsThrottled"
    raise ArmError(HTTPStatus.TOO_MANY_REQUESTS, code, message, headers={"Retry-After": str(seconds)})


def allocation_failure(world: World, pool: Record) -> ArmError | None:
    """Why the pool gets no more machines of its size; None where it does."""
    if world.faults.find(FaultKind.CAPACITY, pool.properties["vmSize"]) is None:
        return None
    zonal = bool(pool.properties.get("availabilityZones"))
    message = (
        f"Allocation failed. We do not have sufficient capacity for the requested VM size in this "
        f"{'zone' if zonal else 'region'}. Read more about improving likelihood of allocation success at "
        "https://aka.ms/allocation-guidance"
    )
    return conflict(message, code="ZonalAllocationFailed" if zonal else "AllocationFailed")


def waits(world: World, record: Record) -> bool:
    """Whether Azure has not yet spread the news of a role assignment, or of a resource's identity."""
    fault = world.faults.find(FaultKind.ROLES)
    return fault is not None and float(record.facts.get(CREATED, 0)) >= fault.since
