from __future__ import annotations

from typing import Any

import pytest

from simulator.azure import locks
from simulator.world.faults import FaultError, new_fault
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, cluster_body
from tests.support.blob_account import ACCOUNT, account_body
from tests.support.networks import ROUTES, make, routes_body

REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/images1"
TAGGED: dict[str, dict[str, Any]] = {
    GROUP: {"location": "eastus"},
    CLUSTER: cluster_body(),
    REGISTRY: {"location": "eastus", "sku": {"name": "Basic"}},
    ACCOUNT: account_body(),
}
FULL = {f"tag{number}": "x" * 256 for number in range(49)}


@pytest.mark.parametrize("path", TAGGED)
@pytest.mark.parametrize(
    ("tags", "code", "part"),
    [
        (FULL | {"a": "", "b": ""}, "InvalidTagCount", "has 51 tags. The maximum number of tags on a resource is 50."),
        ({f"{each}b": "" for each in "<>%&\\?/"}, "InvalidTagNameCharacters", "'<b, >b, %b, &b, \\b, ?b, /b'"),
        ({"a\tb": ""}, "InvalidTagNameCharacters", "'<,>,%,&,\\,?,/' or control characters."),
        ({"n" * 513: ""}, "InvalidTagName", "Following tag name 'nnn"),
        ({"a": "v" * 257}, "InvalidTagValueLength", "Maximum allowed length for tag value - '256' characters."),
        ({"a": 1}, "InvalidParameter", "'tags.a' must be of type string"),
        ({"a": None}, "InvalidParameter", "'tags.a' must be of type string, not null"),
    ],
)
def test_rejects_invalid_tags(cluster: Arm, path: str, tags: dict[str, Any], code: str, part: str) -> None:
    status, found, message = cluster.refusal(cluster.put(path, TAGGED[path] | {"tags": tags}))
    assert (status, found) == (400, code)
    assert part in message


@pytest.mark.parametrize(("path", "most"), [(GROUP, 512), (REGISTRY, 512), (ACCOUNT, 128)])
def test_accepts_tags_up_to_the_limits(cluster: Arm, path: str, most: int) -> None:
    tags = FULL | {"n" * most: "<>%&\\?/ are allowed in a value"}
    assert cluster.put(path, TAGGED[path] | {"tags": tags}).status_code in (200, 201, 202)
    assert cluster.get(path)["tags"] == tags
    cluster.done()
    longer = cluster.refusal(cluster.put(path, TAGGED[path] | {"tags": {"n" * (most + 1): ""}}))
    assert longer[:2] == (400, "InvalidTagName")
    assert f"Maximum allowed length for tag name - '{most}' characters." in longer[2]


SCOPE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
LISTED = "providers/Microsoft.Authorization/locks"


def lock(arm: Arm, level: str, scope: str) -> None:
    arm.server.world.faults.fault(new_fault("lock", level=level, scope=scope))


def listed(arm: Arm, scope: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = arm.call("GET", f"{scope}/{LISTED}", **{"api-version": "2016-09-01"}).json()["value"]
    return found


@pytest.mark.parametrize(("scope", "locked"), [("group", GROUP), ("rg", GROUP), ("subscription", SCOPE)])
def test_a_delete_lock_prevents_deletion(cluster: Arm, scope: str, locked: str) -> None:
    lock(cluster, "CanNotDelete", scope)
    message = (
        f"The scope '{GROUP}' cannot perform delete operation because following scope(s) are locked: '{locked}'. "
        "Please remove the lock and try again."
    )
    assert cluster.refusal(cluster.call("DELETE", GROUP)) == (409, "ScopeLocked", message)
    assert cluster.refusal(cluster.call("DELETE", CLUSTER))[1] == "ScopeLocked"
    assert cluster.put(CLUSTER, cluster_body()).status_code == 200, "changes are allowed"
    (found,) = listed(cluster, locked)
    assert found["id"] == f"{locked}/{LISTED}/simulated-cannotdelete"
    assert found["properties"]["level"] == "CanNotDelete"
    assert cluster.server.world.faults.heal("lock")
    assert listed(cluster, locked) == []


def test_a_read_only_lock_prevents_changes_and_credentials(cluster: Arm) -> None:
    lock(cluster, "ReadOnly", "group")
    assert cluster.refusal(cluster.put(CLUSTER, cluster_body()))[:2] == (409, "ScopeLocked")
    answer = cluster.call("POST", f"{CLUSTER}/listClusterAdminCredential")
    assert "cannot perform write operation" in cluster.refusal(answer)[2]
    assert cluster.get(CLUSTER)["name"]


@pytest.mark.parametrize(
    ("level", "refused"), [("CanNotDelete", {"DELETE": "delete"}), ("ReadOnly", {"PUT": "write", "DELETE": "delete"})]
)
def test_a_lock_protects_the_routes_of_a_table(arm: Arm, level: str, refused: dict[str, str]) -> None:
    """A group's delete lock also protects routes (MicrosoftDocs/azure-docs#56524)."""
    make(arm, GROUP, {"location": "eastus"})
    table = make(arm, ROUTES, routes_body())
    lock(arm, level, "group")
    route, body = f"{ROUTES}/routes/out", {"properties": table["properties"]["routes"][0]["properties"]}
    for method, operation in refused.items():
        status, code, message = arm.refusal(arm.call(method, route, body))
        assert (status, code) == (409, "ScopeLocked")
        assert message.startswith(f"The scope '{route}' cannot perform {operation} operation")
    assert "PUT" in refused or arm.put(route, body).status_code == 200
    assert arm.get(route)["name"] == "out"


def test_a_lock_of_another_group_has_no_effect(cluster: Arm) -> None:
    lock(cluster, "ReadOnly", "elsewhere")
    assert cluster.put(CLUSTER, cluster_body()).status_code == 200
    assert locks.of_groups(cluster.server.world.faults.load(), ["rg"]) == []
    assert locks.of_groups(cluster.server.world.faults.load(), ["Elsewhere"]) == ["lock ReadOnly elsewhere"]


@pytest.mark.parametrize("given", [{"level": "ReadOnly"}, {"scope": "group"}, {"level": "None", "scope": "group"}])
def test_a_lock_needs_a_level_and_a_scope(given: dict[str, str]) -> None:
    with pytest.raises(FaultError, match="--level|--scope"):
        new_fault("lock", **given)  # type: ignore[arg-type]


def test_a_deleted_lock_has_no_effect(cluster: Arm) -> None:
    lock(cluster, "ReadOnly", "rg")
    lock(cluster, "CanNotDelete", "elsewhere")
    path, version = f"{GROUP}/{LISTED}/simulated-readonly", {"api-version": "2016-09-01"}
    assert cluster.call("GET", path, **version).json()["properties"]["level"] == "ReadOnly"
    assert cluster.call("DELETE", path, **version).status_code == 200
    assert cluster.refusal(cluster.call("GET", path, **version))[:2] == (404, "LockNotFound")
    assert cluster.put(CLUSTER, cluster_body()).status_code == 200
    assert [each.scope for each in cluster.server.world.faults.load()] == ["elsewhere"]
