from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.azure.features import CHANGING_S
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, FakeBackend, cluster_body, start

SCOPE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
SIZES = f"{SCOPE}/providers/Microsoft.Compute/skus"
TABLE = f"{GROUP}/providers/Microsoft.Network/routeTables/out"
Start = Callable[..., Arm]


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Start]:
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


def test_lists_the_vm_sizes_of_a_region(arm: Arm) -> None:
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


def test_lists_the_vm_sizes_of_all_regions(arm: Arm) -> None:
    found = arm.call("GET", SIZES, **{"api-version": "2021-07-01"}).json()["value"]
    assert {sku["locations"][0] for sku in found} == set(SUBSCRIPTION.regions)
    assert sizes(arm, "moon") == {}
    other = arm.call("GET", SIZES, **{"api-version": "2021-07-01", "$filter": "name eq 'x'"})
    assert arm.refusal(other)[:2] == (400, "BadRequest")


def test_returns_a_resource_provider(arm: Arm) -> None:
    path = f"{SCOPE}/providers/microsoft.compute"
    found = arm.call("GET", path, **{"api-version": "2021-04-01"}).json()
    (machines,) = found.pop("resourceTypes")
    assert (machines["resourceType"], "eastus" in machines["locations"]) == ("virtualMachines", True)
    assert machines["apiVersions"][-1] == "2024-11-01"
    assert found == {
        "id": f"{SCOPE}/providers/Microsoft.Compute",
        "namespace": "Microsoft.Compute",
        "registrationPolicy": "RegistrationRequired",
        "registrationState": "Registered",
    }


NEWEST = {"api-version": "2021-04-01"}
AKS = {"api-version": "2026-06-01"}
NODES = f"{SCOPE}/resourceGroups/MC_rg_aks_eastus"
SETS = f"{NODES}/providers/Microsoft.Compute/virtualMachineScaleSets"


def names(answer: dict[str, Any]) -> list[str]:
    return [each["name"] for each in answer["value"]]


def test_lists_regions_and_role_definitions(arm: Arm) -> None:
    assert names(arm.call("GET", f"{SCOPE}/locations", **{"api-version": "2022-12-01"}).json()) == list(
        SUBSCRIPTION.regions
    )
    roles = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions"
    query = {"api-version": "2022-05-01-preview", "$filter": "roleName eq 'acrpull'"}
    (role,) = arm.call("GET", roles, **query).json()["value"]
    assert (role["name"], role["properties"]["roleName"]) == ("7f951dda-4ed3-4680-a7ca-43fe172d538d", "AcrPull")
    assert arm.call("GET", f"{roles}/{role['name']}").json() == role
    assert arm.refusal(arm.call("GET", f"{roles}/{role['name'][:-1]}0"))[1] == "RoleDefinitionDoesNotExist"
    assert arm.call("GET", roles, **query | {"$filter": "roleName eq 'None'"}).json() == {"value": []}


def test_creation_needs_a_registered_provider(another: Start) -> None:
    arm = another(providers={**SUBSCRIPTION.providers, "Microsoft.ContainerService": "NotRegistered"})
    arm.put(GROUP, {"location": "eastus"})
    refused = arm.put(CLUSTER, cluster_body())
    assert arm.refusal(refused)[:2] == (409, "MissingSubscriptionRegistration")
    (detail,) = refused.json()["error"]["details"]
    assert detail["target"] == "Microsoft.ContainerService", "clients register this provider"
    path = f"{SCOPE}/providers/Microsoft.ContainerService"
    assert arm.call("POST", f"{path}/register", **NEWEST).json()["registrationState"] == "Registered"
    assert arm.put(CLUSTER, cluster_body()).status_code == 201
    assert arm.call("POST", f"{SCOPE}/providers/Microsoft.Nothing/register", **NEWEST).status_code == 404


def test_registers_and_lists_preview_features(arm: Arm) -> None:
    above, version = f"{SCOPE}/providers/Microsoft.Features", {"api-version": "2021-07-01"}
    path = f"{above}/providers/microsoft.containerservice/features/AKSInfinibandSupport"

    def state(method: str, tail: str = "") -> str:
        return str(arm.call(method, f"{path}{tail}", **version).json()["properties"]["state"])

    faults = arm.server.world.faults
    assert [state("GET"), state("POST", "/unregister"), state("GET")] == ["Registered", *["Unregistering"] * 2]
    faults.clock = lambda: time.time() + CHANGING_S
    assert state("GET") == "Unregistered"
    assert [state("POST", "/register"), state("GET")] == ["Registering", "Registering"]
    faults.clock = lambda: time.time() + 2 * CHANGING_S
    assert state("GET") == "Registered"
    (listed,) = arm.call("GET", f"{above}/features", **version).json()["value"]
    assert listed["name"] == "Microsoft.ContainerService/AKSInfinibandSupport"
    assert arm.call("GET", f"{above}/providers/Microsoft.Compute/features", **version).json() == {"value": []}
    refused = arm.call("POST", f"{above}/providers/Microsoft.ContainerService/features/Nothing/register", **version)
    assert arm.refusal(refused)[:2] == (404, "FeatureNotFound")


def test_states_of_features_and_providers_survive_a_restart(arm: Arm) -> None:
    feature = f"{SCOPE}/providers/Microsoft.Features/providers/Microsoft.ContainerService/features/AKSInfinibandSupport"
    provider = f"{SCOPE}/providers/Microsoft.Compute"
    arm.call("POST", f"{feature}/unregister", **{"api-version": "2021-07-01"})
    arm.call("POST", f"{provider}/unregister", **NEWEST)
    arm.server.operations.resume()
    shown = arm.call("GET", feature, **{"api-version": "2021-07-01"}).json()
    assert shown["properties"]["state"] == "Unregistering"
    assert arm.call("GET", provider, **NEWEST).json()["registrationState"] == "Unregistered"


def test_lists_resources_by_type_name_and_group(cluster: Arm) -> None:
    def listed(scope: str, text: str = "") -> list[str]:
        return names(cluster.call("GET", f"{scope}/resources", **NEWEST, **({"$filter": text} if text else {})).json())

    assert listed(SCOPE) == listed(GROUP) == ["aks"]
    assert listed(SCOPE, "resourceType eq 'microsoft.containerservice/managedclusters' and name eq 'AKS'") == ["aks"]
    assert listed(SCOPE, "resourceType eq 'Microsoft.Storage/storageAccounts'") == []
    refused = cluster.call("GET", f"{SCOPE}/resources", **NEWEST, **{"$filter": "tagName eq 'x'"})
    assert "The filter 'tagName eq 'x'' is not supported" in cluster.refusal(refused)[2]


@pytest.mark.parametrize(
    ("provider", "name", "reason"),
    [
        ("Microsoft.Storage", "free", None),
        ("Microsoft.Storage", "contoso", "AlreadyExists"),
        ("Microsoft.Storage", "No", "AccountNameInvalid"),
        ("Microsoft.ContainerRegistry", "images", "AlreadyExists"),
    ],
)
def test_checks_the_availability_of_names(provider: str, name: str, reason: str | None, arm: Arm) -> None:
    answer = arm.call("POST", f"{SCOPE}/providers/{provider}/checkNameAvailability", {"name": name, "type": "x"}).json()
    assert (answer["nameAvailable"], answer.get("reason")) == (reason is None, reason)


def test_lists_kubernetes_versions_and_upgrades(cluster: Arm) -> None:
    path = f"{SCOPE}/providers/Microsoft.ContainerService/locations/eastus/kubernetesVersions"
    offered = cluster.call("GET", path, **AKS).json()["values"]
    assert {each["version"] for each in offered} == set(SUBSCRIPTION.kubernetes_patches)
    assert [each["isDefault"] for each in offered].count(True) == 1
    plane = cluster.call("GET", f"{CLUSTER}/upgradeProfiles/default", **AKS).json()["properties"]
    pool = cluster.call("GET", f"{CLUSTER}/agentPools/system/upgradeProfiles/default", **AKS).json()["properties"]
    assert [each["name"] for each in plane["agentPoolProfiles"]] == ["system"]
    assert pool["upgrades"] == [], "not above the control plane"
    newest = cluster.get(f"{CLUSTER}/agentPools/system")["properties"]["nodeImageVersion"]
    assert pool["latestNodeImageVersion"] == newest


def test_returns_the_node_resource_group(cluster: Arm) -> None:
    group = cluster.get(NODES)
    assert (group["location"], group["managedBy"]) == ("eastus", CLUSTER)
    assert cluster.call("HEAD", NODES).status_code == 204
    assert names(cluster.get(f"{SCOPE}/resourceGroups")) == ["rg", "MC_rg_aks_eastus"]
    (found,) = cluster.get(SETS)["value"]
    assert (found["sku"]["capacity"], found["tags"]) == (2, {"aks-managed-poolName": "system"})
    assert cluster.get(f"{SETS}/{found['name']}") == found

    machines = cluster.get(f"{SETS}/{found['name']}/virtualMachines")["value"]
    assert [each["properties"]["osProfile"]["computerName"] for each in machines] == cluster.node_names()
    view = cluster.get(f"{SETS}/{found['name']}/virtualMachines/1/instanceView")
    assert view["statuses"][-1]["code"] == "PowerState/running"
    assert cluster.call("GET", f"{SETS}/{found['name']}/virtualMachines/7/instanceView").status_code == 404
    assert cluster.call("GET", f"{SETS}/other").status_code == 404


def test_rejects_changes_of_the_node_resource_group(cluster: Arm) -> None:
    """The first code and text are Azure's (Azure/AKS#1080). Changes of the group are not simulated."""
    shown = cluster.get(NODES)
    status, code, message = cluster.refusal(cluster.put(NODES, {"location": "eastus"}))
    assert (status, code) == (409, "ResourceGroupManagedByMismatch")
    assert f"cannot be changed from its current value '{CLUSTER}'" in message
    for method, body in (("PUT", shown), ("PATCH", {"tags": {"team": "a"}}), ("DELETE", None)):
        assert cluster.refusal(cluster.call(method, NODES, body))[:2] == (409, "OperationNotAllowed")
    assert cluster.get(NODES) == shown
    cluster.call("DELETE", CLUSTER)
    cluster.done()
    assert cluster.call("GET", NODES).status_code == 404
    assert cluster.put(NODES, {"location": "eastus"}).status_code == 201, "the name is available again"


def test_lists_and_deletes_machines_by_name(cluster: Arm) -> None:
    pool = f"{CLUSTER}/agentPools/system"
    listed = cluster.call("GET", f"{pool}/machines", **AKS).json()
    first, second = names(listed)
    assert [first, second] == cluster.node_names()
    assert listed["value"][0]["properties"]["resourceId"].lower().startswith(NODES.lower())
    assert cluster.call("POST", f"{pool}/deleteMachines", {"machineNames": ["other"]}).status_code == 400
    begun = cluster.call("POST", f"{pool}/deleteMachines", {"machineNames": [first]})
    assert (begun.status_code, "Azure-AsyncOperation" in begun.headers) == (202, True)
    cluster.done()
    assert (cluster.node_names(), cluster.get(pool)["properties"]["count"]) == ([second], 1)
    image = cluster.get(pool)["properties"]["nodeImageVersion"]
    upgraded = cluster.call("POST", f"{pool}/upgradeNodeImageVersion").json()
    assert upgraded["properties"]["nodeImageVersion"] == image


def test_returns_the_policy_of_a_refusal(arm: Arm) -> None:
    arm.server.world.faults.fault(new_fault("policy", tag="CostCenter"))
    message = arm.refusal(arm.put(GROUP, {"location": "eastus"}))[2]
    path, version = message.split('"id":"')[1].partition('"')[0], {"api-version": "2025-11-01"}
    assert arm.call("GET", path, **version).json()["properties"]["parameters"] == {"tagName": {"value": "CostCenter"}}
    arm.server.world.faults.heal("policy")
    assert arm.refusal(arm.call("GET", path, **version))[:2] == (404, "PolicyAssignmentNotFound")


def test_lists_network_usages_of_a_region(group: Arm) -> None:
    group.put(TABLE, {"location": "eastus"})
    usages = {
        region: group.get(f"{SCOPE}/providers/Microsoft.Network/locations/{region}/usages")["value"]
        for region in ("eastus", "westus3")
    }
    counted = {region: {each["name"]["value"]: each["currentValue"] for each in usages[region]} for region in usages}
    assert (counted["eastus"]["RouteTables"], counted["westus3"]["RouteTables"]) == (1, 0)
    assert counted["eastus"]["PublicIPAddresses"] == 0
