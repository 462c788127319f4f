from __future__ import annotations

from typing import Any

import httpx
import pytest

from simulator.azure.subscription import Principal
from simulator.azure.types.role_assignment.allowed import built_in
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, pool_path

ROLES = {role["name"]: role["id"] for role in built_in().values()}
SCOPE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
ASSIGNMENTS = "providers/Microsoft.Authorization/roleAssignments"
NETWORK = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/ai"
ROUTE = f"{GROUP}/providers/Microsoft.Network/routeTables/out/routes/all"
FEATURE = f"{SCOPE}/providers/Microsoft.Features/providers/Microsoft.ContainerService/features/AKSInfinibandSupport"
REGISTRATION = (
    f"{SCOPE}/providers/Microsoft.Features/featureProviders/Microsoft.ContainerService"
    "/subscriptionFeatureRegistrations/AKSInfinibandSupport"
)
GRACE, AUTOMATION = (SUBSCRIPTION.directory[name] for name in ("grace", "automation"))
ID = "00000000-0000-0000-0000-000000000001"
ASSIGNMENT = f"{CLUSTER}/{ASSIGNMENTS}/00000000-0000-0000-0000-00000000000a"
AKS = "Microsoft.ContainerService/managedClusters"

REQUESTS = {
    "group": ("PUT", f"{SCOPE}/resourceGroups/mine", "Microsoft.Resources/subscriptions/resourcegroups/write"),
    "tags": ("PATCH", CLUSTER, f"{AKS}/write"),
    "pool": ("PUT", pool_path(), f"{AKS}/agentPools/write"),
    "user credential": ("POST", f"{CLUSTER}/listClusterUserCredential", f"{AKS}/listClusterUserCredential/action"),
    "admin credential": ("POST", f"{CLUSTER}/listClusterAdminCredential", f"{AKS}/listClusterAdminCredential/action"),
    "assignment": ("PUT", ASSIGNMENT, "Microsoft.Authorization/roleAssignments/write"),
    "network": ("PUT", NETWORK, "Microsoft.Network/virtualNetworks/write"),
    "route": ("PUT", ROUTE, "Microsoft.Network/routeTables/routes/write"),
    "provider": ("POST", f"{SCOPE}/providers/Microsoft.Storage/register", "Microsoft.Storage/register/action"),
    "feature": ("POST", f"{FEATURE}/register", "Microsoft.Features/providers/features/register/action"),
    "registration": (
        "DELETE",
        REGISTRATION,
        "Microsoft.Features/featureProviders/subscriptionFeatureRegistrations/delete",
    ),
    "deletion": ("DELETE", CLUSTER, f"{AKS}/delete"),  # last: a role on the cluster goes with it
}


def assign(arm: Arm, role: str, scope: str = GROUP, principal: str = GRACE.object_id) -> None:
    arm.assign(ROLES[role], scope, principal)


def send(arm: Arm, who: Principal, method: str, path: str, body: Any = None) -> httpx.Response:
    """Most requests have no body, which Azure checks after the role."""
    token, _ = arm.server.tokens.issue(arm.server.tokens.arm, who)
    arm.client.headers["Authorization"], own = f"Bearer {token}", arm.client.headers["Authorization"]
    try:
        return arm.call(method, path, body, **{"api-version": "2021-07-01"} if "Microsoft.Features" in path else {})
    finally:
        arm.client.headers["Authorization"] = own


def allowed(arm: Arm, who: Principal = GRACE) -> set[str]:
    answers = {name: send(arm, who, *request[:2]) for name, request in REQUESTS.items()}
    return {name for name, answer in answers.items() if answer.status_code != 403}


@pytest.mark.parametrize("name", REQUESTS)
def test_rejects_a_change_without_a_role(cluster: Arm, name: str) -> None:
    method, path, action = REQUESTS[name]
    scope = SCOPE if name in ("provider", "feature") else path.partition("/listCluster")[0]
    answer = send(cluster, AUTOMATION, method, path, {})
    assert cluster.refusal(answer)[:2] == (403, "AuthorizationFailed")
    assert answer.json()["error"]["message"] == (
        f"The client '{AUTOMATION.client_id}' with object id '{AUTOMATION.object_id}' does not have authorization to "
        f"perform action '{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, "
        "please refresh your credentials."
    )
    assert f"The client '{GRACE.upn}' with" in send(cluster, GRACE, method, path).text


def test_allows_reads_without_a_role(cluster: Arm) -> None:
    """This differs from Azure (docs/simulator.md)."""
    for path in (CLUSTER, GROUP, f"{GROUP}/resources"):
        assert send(cluster, AUTOMATION, "GET", path).status_code == 200
    check = f"{SCOPE}/providers/Microsoft.Storage/checkNameAvailability"
    assert send(cluster, AUTOMATION, "POST", check, {"name": "free1"}).status_code == 200


IN_GROUP = set(REQUESTS) - {"group", "provider", "feature", "registration"}


@pytest.mark.parametrize(
    ("role", "scope", "may"),
    [
        ("Owner", SCOPE, set(REQUESTS)),
        ("Owner", GROUP, IN_GROUP),
        ("Owner", CLUSTER, IN_GROUP - {"network", "route"}),
        ("Contributor", SCOPE, set(REQUESTS) - {"assignment"}),
        ("Contributor", GROUP, IN_GROUP - {"assignment"}),
        ("Reader", SCOPE, set()),
        ("Network Contributor", GROUP, {"network", "route"}),
        ("User Access Administrator", GROUP, {"assignment"}),
        ("Role Based Access Control Administrator", GROUP, {"assignment"}),
        ("Azure Kubernetes Service Cluster User Role", CLUSTER, {"user credential"}),
        ("Azure Kubernetes Service Cluster Admin Role", CLUSTER, {"admin credential"}),
        ("Azure Kubernetes Service RBAC Admin", CLUSTER, {"user credential"}),
        ("Azure Kubernetes Service RBAC Writer", CLUSTER, set()),
        ("Storage Blob Data Owner", SCOPE, set()),
        ("AcrPush", SCOPE, set()),
    ],
)
def test_roles_allow_their_changes(cluster: Arm, role: str, scope: str, may: set[str]) -> None:
    assign(cluster, role, scope)
    assert allowed(cluster) == may


def test_a_role_of_a_group_applies_to_its_members(cluster: Arm) -> None:
    assign(cluster, "Contributor", principal=GRACE.groups[0])
    assert "pool" in allowed(cluster)


def test_ignores_the_case_of_principal_ids(cluster: Arm) -> None:
    assign(cluster, "Contributor", principal=AUTOMATION.object_id.upper())
    assert "pool" in allowed(cluster, AUTOMATION)
    assert cluster.get(f"{GROUP}/{ASSIGNMENTS}/{ID}")["properties"]["principalId"] == AUTOMATION.object_id


def test_the_deployer_needs_no_role(cluster: Arm) -> None:
    assert allowed(cluster, SUBSCRIPTION.deployer) == set(REQUESTS)


def test_lists_the_permissions_of_the_caller(cluster: Arm) -> None:
    permissions = f"{GROUP}/providers/Microsoft.Authorization/permissions"
    assert send(cluster, GRACE, "GET", permissions).json() == {"value": []}
    assign(cluster, "Role Based Access Control Administrator")
    (role,) = send(cluster, GRACE, "GET", permissions).json()["value"]
    assert "Microsoft.Authorization/roleAssignments/write" in role["actions"]
    assert role["notActions"] == role["dataActions"] == role["notDataActions"] == []


def test_role_definitions_have_their_permissions(arm: Arm) -> None:
    definition = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{ROLES['Contributor']}"
    (permissions,) = arm.get(definition)["properties"]["permissions"]
    assert permissions["actions"] == ["*"]
    assert "Microsoft.Authorization/*/Write" in permissions["notActions"]


def test_lists_permissions_of_the_subscription_and_of_existing_groups(arm: Arm) -> None:
    version = {"api-version": "2022-04-01"}
    owner = {"value": [{"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}]}
    assert arm.call("GET", f"{SCOPE}/providers/Microsoft.Authorization/permissions", **version).json() == owner
    missing = arm.call("GET", f"{GROUP}/providers/Microsoft.Authorization/permissions", **version)
    assert arm.refusal(missing)[:2] == (404, "ResourceGroupNotFound")
    arm.put(GROUP, {"location": "eastus"})
    assert arm.call("GET", f"{GROUP}/providers/Microsoft.Authorization/permissions", **version).json() == owner


def test_filters_role_assignments_by_principal_and_scope(arm: Arm) -> None:
    arm.put(GROUP, {"location": "eastus"})
    role = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{ROLES['Owner']}"
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
    assert listed(f"assignedTo('{me}')") == [], "the assignment is above the group"
    group = {"principalId": GRACE.groups[0], "principalType": "Group", "roleDefinitionId": role}
    assert arm.put(f"{SCOPE}/{ASSIGNMENTS}/{ID}", {"properties": group}).status_code == 201
    assert listed(f"atScope() and assignedTo('{GRACE.object_id.upper()}')") == [GRACE.groups[0]]
    assert listed(f"atScope() and principalId eq '{GRACE.object_id}'") == []
    refused = arm.call("GET", f"{GROUP}/{ASSIGNMENTS}", **{"api-version": "2022-04-01", "$filter": "asTarget()"})
    assert "The filter 'asTarget()' is not supported" in arm.refusal(refused)[2]
