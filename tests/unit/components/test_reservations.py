from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.azure.reservations import check_reservations, groups, reserved_nodes
from config.schema.pools import agent_pool_name
from tests.support.mocked_azure import Azure
from tests.support.mocks import deploy, program
from tests.support.settings import A100, settings_with

SHARED = "/subscriptions/00000000-0000-4000-8000-000000000001/resourceGroups/shared/providers"
IDENTITY = f"{SHARED}/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
CRG = f"{SHARED}/Microsoft.Compute/capacityReservationGroups/crg"


def pool(**keys: Any) -> dict[str, Any]:
    return {"vmSku": A100, "count": 2, "capacityReservationGroup": CRG, **keys}


def azure(location: str = "East US", **machines: int) -> Azure:
    """Azure's API may return a region's display name."""
    return Azure(reservations={"crg": {"location": location, "machines": machines or {A100: 2}}}, identities=("aks",))


def check(azure: Azure, **keys: Any) -> None:
    settings = settings_with(cluster={"identity": IDENTITY}, pools={"gpu": pool(**keys)})
    deploy(lambda: check_reservations(settings, groups(settings)), azure)


def test_sets_the_group_of_the_pool_and_the_identity_of_the_cluster() -> None:
    found = program({"cluster": {"identity": IDENTITY}, "pools": {"gpu": pool()}}, azure())
    assert found.one(":AgentPool").inputs["capacityReservationGroupID"] == CRG
    identity = found.one(":ManagedCluster").inputs["identity"]
    assert identity == {"type": "UserAssigned", "userAssignedIdentities": [IDENTITY]}


def test_another_group_replaces_the_pool() -> None:
    """AKS cannot change the group of a pool with nodes (its page on capacity reservation groups)."""
    names = {
        agent_pool_name("gpu", settings_with(pools={"gpu": {**pool(), "capacityReservationGroup": group}}).pools["gpu"])
        for group in (None, CRG, CRG.upper(), f"{CRG}2")
    }
    assert len(names) == 3, "ids are not case-sensitive"


def test_accepts_a_group_with_enough_nodes(warnings: list[str]) -> None:
    check(azure())
    assert warnings == []


@pytest.mark.parametrize(
    ("there", "wrong", "fix"),
    [
        (Azure(identities=("aks",)), "is a group that this subscription does not have", "config rm"),
        (Azure(reservations=azure().reservations), "cluster.identity is an identity that", "config rm"),
        (azure("westus3"), "is a group in westus3, but the cluster is in eastus", "config rm"),
        (
            azure(Standard_NC4as_T4_v3=8),
            f"that reserves Standard_NC4as_T4_v3, not {A100}",
            f"group crg --name {A100} --location eastus --sku {A100}",
        ),
    ],
)
def test_rejects_a_group_that_cannot_serve_the_pool(there: Azure, wrong: str, fix: str) -> None:
    """AKS would create the pool and only warn."""
    with pytest.raises(pulumi.RunError) as refused:
        check(there)
    assert wrong in str(refused.value)
    assert fix in str(refused.value)


@pytest.mark.parametrize("keys", [{"count": 3}, {"autoscale": {"min": 1, "max": 3}}])
def test_warns_of_nodes_that_are_not_reserved(keys: dict[str, Any], warnings: list[str]) -> None:
    check(azure(), **keys)
    assert warnings == [
        f"pools.gpu: only 2 nodes of {A100} are reserved, but the pool may have 3. "
        "The other nodes need free capacity and quota."
    ]


def test_counts_reserved_nodes_by_pool() -> None:
    settings = settings_with(cluster={"identity": IDENTITY}, pools={"gpu": pool(), "other": {"vmSku": A100}})
    found: list[dict[str, int]] = []
    deploy(lambda: found.append(reserved_nodes(settings, groups(settings))), azure())
    assert found == [{"gpu": 2}]
