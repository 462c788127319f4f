from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.rules.subscription import allows
from simulator.azure.guard import NO_ACCESS
from simulator.azure.types.role_assignment.allowed import built_in, grants
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm
from tests.support.case_files import case_table

PATTERNS = st.text("*aAb/.?", max_size=8)


@case_table(__file__, "examples")
def test_azure_examples(actions: list[str], not_actions: list[str], granted: list[str], denied: list[str]) -> None:
    assert [action for action in (*granted, *denied) if grants(action, actions, not_actions)] == granted


@given(PATTERNS, PATTERNS, st.text("aAb/.", max_size=6))
def test_the_program_matches_the_same_patterns(pattern: str, excluded: str, action: str) -> None:
    role = {"actions": [pattern], "notActions": [excluded]}
    assert allows(role, action) == grants(action, [pattern], [excluded])


ROLES = {role["name"]: role["id"] for role in built_in().values()}
CLUSTER_ADMIN, WRITER, READER = (
    f"Azure Kubernetes Service RBAC {name}" for name in ("Cluster Admin", "Writer", "Reader")
)
GRACE = SUBSCRIPTION.directory["grace"]


def assign(arm: Arm, role: str, scope: str = CLUSTER, principal: str = GRACE.object_id) -> None:
    arm.assign(ROLES[role], scope, principal)


def review(arm: Arm, request: str, namespace: str = "ai") -> dict[str, Any]:
    """`request` is a verb and a resource: `create pods/exec`, `get jobs.batch`."""
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
    return bool(review(arm, request, namespace)["allowed"])


def test_denies_all_requests_without_a_role(cluster: Arm) -> None:
    assert review(cluster, "list pods") == {"allowed": False, "denied": True, "reason": NO_ACCESS}


@case_table(__file__, "roles", file="guard")
def test_roles_allow_their_requests(role: str, may: tuple[str, ...], may_not: tuple[str, ...], cluster: Arm) -> None:
    assign(cluster, role)
    requests = (*may, *may_not)
    assert [request for request in requests if allowed(cluster, request)] == list(may)


@pytest.mark.parametrize("scope", [GROUP, CLUSTER.upper()])
def test_a_role_on_a_scope_above_applies(scope: str, cluster: Arm) -> None:
    assign(cluster, CLUSTER_ADMIN, scope)
    assert allowed(cluster, "create pods")


def test_a_role_on_a_namespace_applies_only_there(cluster: Arm) -> None:
    assign(cluster, WRITER, f"{CLUSTER}/namespaces/ai")
    assert [name for name in ("ai", "ai2", "") if allowed(cluster, "create pods", name)] == ["ai"]


def test_a_role_of_a_group_applies_to_its_members(cluster: Arm) -> None:
    assign(cluster, READER, principal=GRACE.groups[0])
    assert allowed(cluster, "get pods")


def test_a_review_needs_a_token(cluster: Arm) -> None:
    answer = cluster.client.post(f"{CLUSTER}/guard", json={}, headers={"Authorization": ""})
    assert answer.status_code == 401
