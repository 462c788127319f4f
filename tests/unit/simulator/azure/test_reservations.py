from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path
from tests.support.networks import make

A100 = "Standard_NC24ads_A100_v4"
SHARED = f"/subscriptions/{SUBSCRIPTION.subscription_id}/resourceGroups/reserved/providers"
CRG = f"{SHARED}/Microsoft.Compute/capacityReservationGroups/a100-eastus"
IDENTITY = f"{SHARED}/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
OTHER = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/other"
USAGES = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Compute/locations/eastus/usages"
FAMILY = "StandardNCADSA100v4Family"


def pool(**changes: Any) -> dict[str, Any]:
    return pool_body(vmSize=A100, **{"capacityReservationGroupID": CRG, "count": 2, **changes})


def up(arm: Arm, location: str = "eastus", identity: str | None = IDENTITY) -> Arm:
    body = cluster_body() | {"location": location}
    if identity:
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}
    arm.put(GROUP, {"location": location})
    arm.put(OTHER, {"location": location})
    make(arm, CLUSTER, body)
    return arm


def used(arm: Arm) -> int:
    usages = arm.call("GET", USAGES, **{"api-version": "2024-07-01"}).json()["value"]
    return next(int(each["currentValue"]) for each in usages if each["name"]["value"] == FAMILY)


def test_shows_a_group_with_its_reservations(arm: Arm) -> None:
    group = arm.get(CRG)
    assert group["location"] == "eastus"
    (member,) = group["properties"]["capacityReservations"]
    assert arm.get(member["id"])["sku"] == {"name": A100, "capacity": 4}
    assert set(arm.get(IDENTITY)["properties"]) == {"clientId", "principalId", "tenantId"}
    for missing in (f"{CRG}2", f"{CRG}/capacityReservations/other", f"{IDENTITY}2"):
        assert arm.call("GET", missing).status_code == 404


@pytest.mark.parametrize(
    ("location", "identity", "changes", "status", "part"),
    [
        ("eastus", None, {}, 400, "needs a cluster with a user-assigned identity"),
        ("eastus", OTHER, {}, 403, "does not have permission to perform action"),
        ("westus3", IDENTITY, {}, 400, f"has no reservation of {A100} in westus3"),
        ("eastus", IDENTITY, {"vmSize": "Standard_NC4as_T4_v3"}, 400, "has no reservation of Standard_NC4as_T4_v3"),
        ("eastus", IDENTITY, {"capacityReservationGroupID": f"{CRG}2"}, 400, "was not found"),
    ],
)
def test_rejects_a_pool_that_cannot_use_the_group(
    arm: Arm, location: str, identity: str | None, changes: dict[str, Any], status: int, part: str
) -> None:
    answer = up(arm, location, identity).put(pool_path(), pool() | {"properties": pool()["properties"] | changes})
    found, _, message = arm.refusal(answer)
    assert (found, part in message) == (status, True), message


def test_reserved_machines_count_once_against_the_quota(arm: Arm) -> None:
    assert used(arm) == 4 * 24
    up(arm)
    make(arm, pool_path("aone"), pool(count=3))
    assert used(arm) == 4 * 24
    make(arm, pool_path("btwo"), pool(count=3))
    assert used(arm) == 6 * 24, "two beyond the reservation"


def test_a_pool_on_reserved_machines_needs_no_free_quota(arm: Arm) -> None:
    quota = SUBSCRIPTION.quota[FAMILY] // 24
    up(arm)
    plain = pool(count=quota - 4)
    del plain["properties"]["capacityReservationGroupID"]
    make(arm, pool_path("plain"), plain)
    assert arm.put(pool_path("own"), pool(count=5)).status_code == 400
    make(arm, pool_path("own"), pool(count=4))


def test_a_pool_cannot_change_its_group(arm: Arm) -> None:
    up(arm)
    plain = pool()
    del plain["properties"]["capacityReservationGroupID"]
    make(arm, pool_path(), plain)
    _, code, _ = arm.refusal(arm.put(pool_path(), pool()))
    assert code == "PropertyChangeNotAllowed"
