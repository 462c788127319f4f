"""What roles of Azure allow inside a cluster: answers to an API server's SubjectAccessReviews."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.azure.guard import NO_ACCESS
from simulator.azure.types.role_assignment.allowed import built_in
from simulator.world.faults import Fault, FaultKind
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm

ROLES = {role["name"]: role["id"] for role in built_in().values()}
CLUSTER_ADMIN, ADMIN, WRITER, READER = (
    f"Azure Kubernetes Service RBAC {name}" for name in ("Cluster Admin", "Admin", "Writer", "Reader")
)
GRACE = SUBSCRIPTION.directory["grace"]


def assign(arm: Arm, role: str, scope: str = CLUSTER, principal: str = GRACE.object_id) -> None:
    path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001"
    definition = f"/providers/Microsoft.Authorization/roleDefinitions/{ROLES[role]}"
    answer = arm.put(path, {"properties": {"principalId": principal, "roleDefinitionId": definition}})
    assert answer.status_code == 201, answer.text


def asked(arm: Arm, request: str, namespace: str = "ai") -> dict[str, Any]:
    """`request` is a verb, a resource with its group, perhaps a subresource: `create pods/exec`, `get jobs.batch`."""
    verb, _, what = request.partition(" ")
    if what.startswith("/"):
        about: dict[str, Any] = {"nonResourceAttributes": {"verb": verb, "path": what}}
    else:
        name, _, subresource = what.partition("/")
        resource, _, group = name.partition(".")
        attributes = {"verb": verb, "resource": resource, "group": group, "subresource": subresource}
        about = {"resourceAttributes": attributes | {"namespace": namespace}}
    spec = {"user": GRACE.upn, "uid": GRACE.object_id, "groups": [*GRACE.groups, "system:authenticated"], **about}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = arm.client.post(f"{CLUSTER}/guard", params={"timeout": "10s"}, json=body)
    assert answer.status_code == 200, answer.text
    status: dict[str, Any] = answer.json()["status"]
    return status


def allowed(arm: Arm, request: str, namespace: str = "ai") -> bool:
    return bool(asked(arm, request, namespace)["allowed"])


def test_without_a_role_nothing_is_allowed_and_azure_s_words_say_so(cluster: Arm) -> None:
    assert asked(cluster, "list pods") == {"allowed": False, "denied": True, "reason": NO_ACCESS}


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        (
            READER,
            ("get pods", "watch jobs.batch", "get pods/log"),
            (
                "list secrets",
                "create pods",
                "create pods/exec",
                "get jobs.batch.volcano.sh",
                "get nodes",
                "get /metrics",
            ),
        ),
        (
            WRITER,
            ("list secrets", "patch deployments.apps", "create pods/exec", "deletecollection pods"),
            (
                "get roles.rbac.authorization.k8s.io",
                "create jobs.batch.volcano.sh",
                "create namespaces",
                "proxy pods",  # not a verb that guard knows: the data action is `pods`, which `pods/*` does not match
            ),
        ),
        (
            ADMIN,
            ("create roles.rbac.authorization.k8s.io", "create jobs.batch.volcano.sh", "get nodes"),
            ("create namespaces", "delete resourcequotas"),
        ),
        (CLUSTER_ADMIN, ("create namespaces", "delete resourcequotas", "get /metrics", "impersonate users"), ()),
        ("Owner", (), ("get pods",)),
    ],
)
def test_roles_allow_what_azure_s_list_says(
    role: str, may: tuple[str, ...], may_not: tuple[str, ...], cluster: Arm
) -> None:
    assign(cluster, role)
    requests = (*may, *may_not)
    assert [request for request in requests if allowed(cluster, request)] == list(may)


@pytest.mark.parametrize("scope", [CLUSTER, GROUP, GROUP.rpartition("/resourceGroups")[0], CLUSTER.upper()])
def test_a_role_above_counts(scope: str, cluster: Arm) -> None:
    assign(cluster, CLUSTER_ADMIN, scope)
    assert allowed(cluster, "create pods")


def test_a_role_in_a_namespace_counts_there_alone(cluster: Arm) -> None:
    assign(cluster, WRITER, f"{CLUSTER}/namespaces/ai")
    assert [name for name in ("ai", "ai2", "") if allowed(cluster, "create pods", name)] == ["ai"]


def test_a_role_of_a_group_counts_for_who_is_in_it(cluster: Arm) -> None:
    assign(cluster, READER, principal=GRACE.groups[0])
    assert allowed(cluster, "get pods")


def test_a_role_acts_late(cluster: Arm) -> None:
    faults = cluster.server.world.faults
    faults.fault(Fault("", FaultKind.ROLES))
    assign(cluster, CLUSTER_ADMIN)
    assert not allowed(cluster, "get pods")
    faults.heal()
    assert allowed(cluster, "get pods")


def test_only_api_servers_are_answered(cluster: Arm) -> None:
    answer = cluster.client.post(f"{CLUSTER}/guard", json={}, headers={"Authorization": ""})
    assert answer.status_code == 401
