"""What can be looked up in the simulated subscription, and that ARM refuses what it does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, TOKEN, Arm, FakeBackend, cluster_body, start
from tests.units.simulator.azure.plugin import AzurePlugin

SCOPE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
SIZES = f"{SCOPE}/providers/Microsoft.Compute/skus"
ASSIGNMENTS = "providers/Microsoft.Authorization/roleAssignments"
PERMISSIONS = "providers/Microsoft.Authorization/permissions"
ROLE = f"{CLUSTER}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-0000000000ff"
Start = Callable[..., Arm]


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Start]:
    """A subscription with other values."""
    started: list[Arm] = []

    def begin(**values: Any) -> Arm:
        started.append(start(tmp_path / "azure", FakeBackend(), SUBSCRIPTION.model_copy(update=values)))
        return started[-1]

    yield begin
    for each in started:
        each.stop()


def sizes(arm: Arm, region: str) -> dict[str, Any]:
    query = {"api-version": "2021-07-01", "$filter": f"location eq '{region}'"}
    found: list[dict[str, Any]] = arm.call("GET", SIZES, **query).json()["value"]
    return {sku["name"]: sku for sku in found}


def test_a_size_in_azures_shape(arm: Arm) -> None:
    assert sizes(arm, "eastus")["Standard_ND96isr_H100_v5"] == {
        "resourceType": "virtualMachines",
        "name": "Standard_ND96isr_H100_v5",
        "tier": "Standard",
        "size": "ND96isr_H100_v5",
        "family": "standardNDSH100v5Family",
        "locations": ["eastus"],
        "locationInfo": [{"location": "eastus", "zones": [], "zoneDetails": []}],
        "capabilities": [
            {"name": "vCPUs", "value": "96"},
            {"name": "MemoryGB", "value": "1900"},
            {"name": "GPUs", "value": "8"},
        ],
        "restrictions": [],
    }


def test_regions_offer_what_pools_of_them_may_have(arm: Arm) -> None:
    there = sizes(arm, "northeurope")
    assert "Standard_ND96isr_H100_v5" not in there
    assert there["Standard_D4ads_v5"]["restrictions"] == there["Standard_NC4as_T4_v3"]["restrictions"] == []
    (restriction,) = there["Standard_NC40ads_H100_v5"]["restrictions"]
    assert restriction == {
        "type": "Location",
        "values": ["northeurope"],
        "restrictionInfo": {"locations": ["northeurope"]},
        "reasonCode": "NotAvailableForSubscription",
    }
    arm.put(GROUP, {"location": "northeurope"})
    profile = {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_NC40ads_H100_v5"}
    body = cluster_body(agentPoolProfiles=[profile]) | {"location": "northeurope"}
    assert "is not allowed in your subscription" in arm.refusal(arm.put(CLUSTER, body))[2]


def test_without_a_filter_all_regions_are_listed(arm: Arm) -> None:
    found = arm.call("GET", SIZES, **{"api-version": "2021-07-01"}).json()["value"]
    assert {sku["locations"][0] for sku in found} == set(SUBSCRIPTION.regions)
    assert sizes(arm, "moon") == {}
    other = arm.call("GET", SIZES, **{"api-version": "2021-07-01", "$filter": "name eq 'x'"})
    assert arm.refusal(other)[:2] == (400, "BadRequest")


def test_a_provider_in_azures_shape(arm: Arm) -> None:
    path = f"{SCOPE}/providers/microsoft.compute"
    assert arm.call("GET", path, **{"api-version": "2021-04-01"}).json() == {
        "id": f"{SCOPE}/providers/Microsoft.Compute",
        "namespace": "Microsoft.Compute",
        "registrationPolicy": "RegistrationRequired",
        "registrationState": "Registered",
        "resourceTypes": [],
    }
    unknown = arm.call("GET", f"{SCOPE}/providers/Microsoft.Nothing", **{"api-version": "2021-04-01"})
    assert arm.refusal(unknown)[:2] == (404, "InvalidResourceNamespace")


def test_nothing_is_made_by_a_provider_that_is_not_registered(another: Start) -> None:
    arm = another(providers={**SUBSCRIPTION.providers, "Microsoft.ContainerService": "NotRegistered"})
    arm.put(GROUP, {"location": "eastus"})
    answer = arm.put(CLUSTER, cluster_body())
    assert arm.refusal(answer)[:2] == (409, "MissingSubscriptionRegistration")
    (detail,) = answer.json()["error"]["details"]
    assert detail["target"] == "Microsoft.ContainerService"  # by which clients know what to register


def test_rights_are_of_the_subscription_and_of_groups_that_are_there(arm: Arm) -> None:
    version = {"api-version": "2022-04-01"}
    owner = {"value": [{"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}]}
    assert arm.call("GET", f"{SCOPE}/{PERMISSIONS}", **version).json() == owner
    missing = arm.call("GET", f"{GROUP}/{PERMISSIONS}", **version)
    assert arm.refusal(missing)[:2] == (404, "ResourceGroupNotFound")
    arm.put(GROUP, {"location": "eastus"})
    assert arm.call("GET", f"{GROUP}/{PERMISSIONS}", **version).json() == owner


def test_without_the_right_no_role_is_assigned(another: Start) -> None:
    arm = another(rights=[{"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Write"]}])
    arm.put(GROUP, {"location": "eastus"})
    arm.put(CLUSTER, cluster_body())
    role = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
    answer = arm.put(ROLE, {"properties": {"principalId": SUBSCRIPTION.object_id, "roleDefinitionId": role}})
    status, code, message = arm.refusal(answer)
    assert (status, code) == (403, "AuthorizationFailed")
    assert "does not have authorization to perform action 'Microsoft.Authorization/roleAssignments/write'" in message


def test_role_assignments_are_listed_by_whose_they_are_and_from_where(arm: Arm) -> None:
    """The program asks for the deployer's at a group: those of others' jump boxes are none of its business."""
    arm.put(GROUP, {"location": "eastus"})
    role = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
    me, other = (f"00000000-0000-4000-8000-00000000000{number}" for number in "12")
    for number, who in enumerate((me, other)):
        body = {"properties": {"principalId": who, "principalType": "User", "roleDefinitionId": role}}
        name = f"00000000-0000-4000-8000-00000000000{number}"
        answer = arm.put(f"{SCOPE}/{ASSIGNMENTS}/{name}", body)
        assert answer.status_code == 201, answer.text

    def listed(chosen: str) -> list[str]:
        query = {"api-version": "2022-04-01", "$filter": chosen}
        found = arm.call("GET", f"{GROUP}/{ASSIGNMENTS}", **query).json()["value"]
        return [each["properties"]["principalId"] for each in found]

    assert listed(f"atScope() and assignedTo('{me}')") == [me]
    assert sorted(listed("atScope()")) == [me, other]
    assert listed(f"assignedTo('{me}')") == [], "it is above the group"
    refused = arm.call("GET", f"{GROUP}/{ASSIGNMENTS}", **{"api-version": "2022-04-01", "$filter": "asTarget()"})
    assert "The filter 'asTarget()' is not supported" in arm.refusal(refused)[2]


@pytest.mark.parametrize("path", [SIZES, f"{SCOPE}/{PERMISSIONS}", f"{SCOPE}/providers/Microsoft.Compute"])
def test_lookups_have_versions_and_are_only_read(path: str, arm: Arm) -> None:
    assert arm.refusal(arm.call("GET", path, **{"api-version": "2001-01-01"}))[:2] == (400, "NoRegisteredProviderFound")
    assert arm.call("PUT", path, {}, **{"api-version": "2021-07-01"}).status_code == 404


def test_a_client_finds_arm_and_its_token(arm: Arm, plugin: AzurePlugin) -> None:
    """By the two that the program uses: the cloud's metadata, which need no token, and the plugin's function."""
    asked = "/metadata/endpoints?api-version=2022-09-01"
    found = arm.client.get(asked, headers={"Authorization": ""}).json()
    assert found["resourceManager"] == arm.server.endpoint
    assert plugin.invoke("azure-native:authorization:getClientToken", {}) == {"token": TOKEN}
