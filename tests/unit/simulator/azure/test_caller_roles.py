"""What callers of Resource Manager may do by their roles, of `simulator/azure/roles.yaml` with its source."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from simulator.azure.subscription import Principal
from simulator.azure.types.role_assignment.allowed import built_in
from simulator.world.faults import new_fault
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
"""A method, a path and the action that it takes."""


def assign(arm: Arm, role: str, scope: str = GROUP, principal: str = GRACE.object_id) -> None:
    arm.assign(ROLES[role], scope, principal)


def asked(arm: Arm, who: Principal, method: str, path: str, body: Any = None) -> httpx.Response:
    """A request with a token of that principal. Most have no body, which is wrong only once the caller may ask."""
    token, _ = arm.server.tokens.issue(arm.server.tokens.arm, who)
    arm.client.headers["Authorization"], own = f"Bearer {token}", arm.client.headers["Authorization"]
    try:
        return arm.call(method, path, body, **{"api-version": "2021-07-01"} if "Microsoft.Features" in path else {})
    finally:
        arm.client.headers["Authorization"] = own


def allowed(arm: Arm, who: Principal = GRACE) -> set[str]:
    answers = {name: asked(arm, who, *request[:2]) for name, request in REQUESTS.items()}
    return {name for name, answer in answers.items() if answer.status_code != 403}


@pytest.mark.parametrize("name", REQUESTS)
def test_without_a_role_a_change_is_refused_in_azures_words(cluster: Arm, name: str) -> None:
    method, path, action = REQUESTS[name]
    scope = SCOPE if name in ("provider", "feature") else path.partition("/listCluster")[0]
    answer = asked(cluster, AUTOMATION, method, path, {})
    assert cluster.refusal(answer)[:2] == (403, "AuthorizationFailed")
    assert answer.json()["error"]["message"] == (
        f"The client '{AUTOMATION.client_id}' with object id '{AUTOMATION.object_id}' does not have authorization to "
        f"perform action '{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, "
        "please refresh your credentials."
    )
    assert f"The client '{GRACE.upn}' with" in asked(cluster, GRACE, method, path).text, "users have names"


def test_reads_are_open(cluster: Arm) -> None:
    """A difference from Azure, which docs/simulator.md lists."""
    for path in (CLUSTER, GROUP, f"{GROUP}/resources"):
        assert asked(cluster, AUTOMATION, "GET", path).status_code == 200
    check = f"{SCOPE}/providers/Microsoft.Storage/checkNameAvailability"
    assert asked(cluster, AUTOMATION, "POST", check, {"name": "free1"}).status_code == 200


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
def test_what_roles_grant(cluster: Arm, role: str, scope: str, may: set[str]) -> None:
    assign(cluster, role, scope)
    assert allowed(cluster) == may
    assert allowed(cluster, AUTOMATION) == set(), "who has no role"


def test_a_role_of_a_group_counts_for_its_members(cluster: Arm) -> None:
    assign(cluster, "Contributor", principal=GRACE.groups[0])
    assert "pool" in allowed(cluster)


def test_ids_of_principals_have_no_case(cluster: Arm) -> None:
    assign(cluster, "Contributor", principal=AUTOMATION.object_id.upper())
    assert "pool" in allowed(cluster, AUTOMATION)
    assert cluster.get(f"{GROUP}/{ASSIGNMENTS}/{ID}")["properties"]["principalId"] == AUTOMATION.object_id


def test_a_role_acts_late(cluster: Arm) -> None:
    cluster.server.world.faults.fault(new_fault("roles"))
    assign(cluster, "Contributor")
    assert allowed(cluster) == set()
    cluster.server.world.faults.heal()
    assert "pool" in allowed(cluster)


def test_the_deployer_needs_no_role(cluster: Arm) -> None:
    assert allowed(cluster, SUBSCRIPTION.deployer) == set(REQUESTS)


def test_a_caller_sees_its_own_rights(cluster: Arm) -> None:
    permissions = f"{GROUP}/providers/Microsoft.Authorization/permissions"
    assert asked(cluster, GRACE, "GET", permissions).json() == {"value": []}
    assign(cluster, "Role Based Access Control Administrator")
    (role,) = asked(cluster, GRACE, "GET", permissions).json()["value"]
    assert "Microsoft.Authorization/roleAssignments/write" in role["actions"]
    assert role["notActions"] == role["dataActions"] == role["notDataActions"] == []


def test_role_definitions_say_what_they_allow(arm: Arm) -> None:
    definition = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{ROLES['Contributor']}"
    (permissions,) = arm.get(definition)["properties"]["permissions"]
    assert permissions["actions"] == ["*"]
    assert "Microsoft.Authorization/*/Write" in permissions["notActions"]


def test_rights_are_of_the_subscription_and_of_groups_that_are_there(arm: Arm) -> None:
    version = {"api-version": "2022-04-01"}
    owner = {"value": [{"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}]}
    assert arm.call("GET", f"{SCOPE}/providers/Microsoft.Authorization/permissions", **version).json() == owner
    missing = arm.call("GET", f"{GROUP}/providers/Microsoft.Authorization/permissions", **version)
    assert arm.refusal(missing)[:2] == (404, "ResourceGroupNotFound")
    arm.put(GROUP, {"location": "eastus"})
    assert arm.call("GET", f"{GROUP}/providers/Microsoft.Authorization/permissions", **version).json() == owner


def test_role_assignments_are_listed_by_whose_they_are_and_from_where(arm: Arm) -> None:
    """The program asks for the deployer's at a group: those of others' jump boxes are none of its business."""
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
    assert listed(f"assignedTo('{me}')") == [], "it is above the group"
    group = {"principalId": GRACE.groups[0], "principalType": "Group", "roleDefinitionId": role}
    assert arm.put(f"{SCOPE}/{ASSIGNMENTS}/{ID}", {"properties": group}).status_code == 201
    theirs = [GRACE.groups[0]]
    assert listed(f"atScope() and assignedTo('{GRACE.object_id.upper()}')") == theirs, "a user has those of its groups"
    assert listed(f"atScope() and principalId eq '{GRACE.object_id}'") == []
    refused = arm.call("GET", f"{GROUP}/{ASSIGNMENTS}", **{"api-version": "2022-04-01", "$filter": "asTarget()"})
    assert "The filter 'asTarget()' is not supported" in arm.refusal(refused)[2]
