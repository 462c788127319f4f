"""Refusals that pass: throttling, no capacity, an operation that goes on."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from simulator.azure.ids import parse_id
from simulator.azure.subscription import guid
from simulator.azure.types.agent_pool import life
from simulator.plugins.azure_native import arm as plugin_arm
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, FakeBackend, cluster_body, pool_body, pool_path, start
from tests.support.azure_plugin import GROUP as GROUP_TYPE
from tests.support.azure_plugin import AzurePlugin, failure
from tests.support.sizes import H100

ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/images1"
ROLE = f"{REGISTRY}/providers/Microsoft.Authorization/roleAssignments/{guid('role')}"
IN_PROGRESS = "please wait for it to finish before starting a new operation"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ALLOCATION_S", 0.05)
    monkeypatch.setattr(plugin_arm, "_FIRST_PAUSE_S", 0.01)


def broken(arm: Arm, kind: str, **options: Any) -> None:
    arm.server.world.faults.fault(new_fault(kind, **options))


def healed(arm: Arm) -> None:
    assert arm.server.world.faults.heal()


def pool_state(arm: Arm, name: str = "gpu") -> str:
    state: str = arm.get(pool_path(name))["properties"]["provisioningState"]
    return state


# -- throttling --------------------------------------------------------------------------------------------------------


def test_throttled_requests_are_told_how_long_and_then_let_in(arm: Arm) -> None:
    faults, now = arm.server.world.faults, time.time()
    faults.clock = lambda: now
    broken(arm, "throttle", seconds=30)
    now += 12.5
    answer = arm.put(GROUP, {"location": "eastus"})
    status, code, message = arm.refusal(answer)
    assert (status, code, answer.headers["Retry-After"]) == (429, "SubscriptionRequestsThrottled", "18")
    assert message.startswith(f"Number of 'write' requests for subscription '{SUBSCRIPTION.subscription_id}'")
    assert "Please try again after '18' seconds" in message
    assert "'read' requests" in arm.refusal(arm.call("GET", GROUP))[2]
    now += 18
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201


def test_the_plugin_waits_as_long_as_it_is_told(plugin: AzurePlugin, arm: Arm) -> None:
    broken(arm, "throttle", seconds=1)
    began = time.monotonic()
    identity, _ = plugin.create(GROUP_TYPE, {"resourceGroupName": "rg", "location": "eastus"})
    assert identity == GROUP
    assert time.monotonic() - began >= 1


def test_the_plugin_does_not_wait_for_more_than_two_minutes(plugin: AzurePlugin, arm: Arm) -> None:
    broken(arm, "throttle", seconds=3600)
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(GROUP_TYPE, {"resourceGroupName": "rg", "location": "eastus"})
    assert failure(raised).startswith(f"cannot check existence of resource '{GROUP}': status code 429, {{")
    assert '"code": "SubscriptionRequestsThrottled", "message": "Number of ' in failure(raised)
    healed(arm)
    assert plugin.create(GROUP_TYPE, {"resourceGroupName": "rg", "location": "eastus"})[0] == GROUP


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (429, "TooManyRequests", 4),
        (408, "", 4),
        (500, "", 4),
        (409, "AnotherOperationInProgress", 4),
        (409, "OperationNotAllowed", 1),
        (400, "BadRequest", 1),
    ],
)
def test_what_the_plugin_tries_again_and_how_often(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, tries: int
) -> None:
    asked: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, json={"error": {"code": code, "message": "no"}})

    client = plugin_arm.ArmClient("http://arm", "token")
    monkeypatch.setattr(client, "_http", httpx.Client(base_url="http://arm", transport=httpx.MockTransport(refuse)))
    deadline = plugin_arm.Deadline(threading.Event())
    with pytest.raises(plugin_arm.ArmFailure, match=f'Status={status}.* Message="no"'):
        client.get("/x", "2025-09-01", deadline)
    assert len(asked) == tries


# -- capacity ----------------------------------------------------------------------------------------------------------


def test_a_pool_without_capacity_fails_and_goes_on_once_there_is_some(cluster: Arm) -> None:
    broken(cluster, "capacity", size=H100)
    accepted = cluster.put(pool_path(), pool_body())
    assert accepted.status_code == 201, "that there is no machine turns out later"
    cluster.done()
    operation = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()
    assert (operation["status"], operation["error"]["code"]) == ("Failed", "AllocationFailed")
    assert "sufficient capacity for the requested VM size in this region" in operation["error"]["message"]
    assert pool_state(cluster) == "Failed"
    assert cluster.put(pool_path("other"), pool_body(vmSize="Standard_D4ads_v5", gpuProfile=None)).status_code == 201
    cluster.done()
    assert len(cluster.node_names()) == 4, "the other pool's two, and still none of the failed one"
    healed(cluster)
    assert cluster.put(pool_path(), pool_body()).status_code == 200
    cluster.done()
    assert pool_state(cluster) == "Succeeded"
    assert len(cluster.node_names()) == 6


def failure_of(cluster: Arm, path: str, body: dict[str, Any]) -> dict[str, str]:
    """How the operation ends that a PUT begins."""
    accepted = cluster.put(path, body)
    cluster.done()
    found: dict[str, str] = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    return found


def test_an_on_demand_pool_with_ephemeral_disks_is_told_its_constraints(cluster: Arm) -> None:
    broken(cluster, "capacity", size=H100)
    error = failure_of(cluster, pool_path(), pool_body(osDiskType="Ephemeral"))
    assert error["code"] == "OverconstrainedAllocationRequest"
    assert "\n  - Differencing (Ephemeral) Disks\n  - Networking Constraints" in error["message"]
    assert "Low Priority" not in error["message"]
    zonal = failure_of(cluster, pool_path("z"), pool_body(osDiskType="Ephemeral", availabilityZones=["1"]))
    assert zonal["code"] == "OverconstrainedZonalAllocationRequest"
    assert "applied are:\n  - Availability Zone\n" in zonal["message"]


def test_machines_that_cannot_be_set_up_become_no_nodes(cluster: Arm) -> None:
    before = cluster.node_names()
    broken(cluster, "node-setup", code=50)
    error = failure_of(cluster, pool_path(), pool_body())
    assert error["code"] == "VMExtensionProvisioningError"
    assert "exit status=50\n" in error["message"]
    assert (pool_state(cluster), cluster.node_names()) == ("Failed", before)
    healed(cluster)
    cluster.put(pool_path(), pool_body())
    cluster.done()
    assert pool_state(cluster) == "Succeeded"


def test_a_policy_wants_a_tag_of_resource_groups_and_of_the_one_that_aks_makes(arm: Arm) -> None:
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    broken(arm, "policy", tag="CostCenter")
    other = f"{GROUP}-other"
    assert arm.refusal(arm.put(other, {"location": "eastus"}))[:2] == (403, "RequestDisallowedByPolicy")
    assert arm.put(other, {"location": "eastus", "tags": {"costcenter": "4711"}}).status_code == 201
    error = failure_of(arm, CLUSTER, cluster_body())
    assert error["code"] == "ReconcileResourceGroupError"
    assert "tags[CostCenter]" in error["message"]
    assert arm.put(CLUSTER, cluster_body() | {"tags": {"CostCenter": "4711"}}).status_code == 200
    arm.done()
    assert arm.get(CLUSTER)["properties"]["provisioningState"] == "Succeeded"


def test_a_pool_that_cannot_grow_keeps_its_nodes_and_can_shrink(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body(count=2))
    cluster.done()
    broken(cluster, "capacity", size=H100)
    cluster.put(pool_path(), pool_body(count=5))
    cluster.done()
    assert (pool_state(cluster), len(cluster.node_names())) == ("Failed", 4)
    cluster.put(pool_path(), pool_body(count=1))
    cluster.done()
    assert (pool_state(cluster), len(cluster.node_names())) == ("Succeeded", 3)


def test_a_zone_without_capacity_has_a_code_of_its_own(cluster: Arm) -> None:
    broken(cluster, "capacity", size=H100)
    accepted = cluster.put(pool_path(), pool_body(availabilityZones=["1"]))
    cluster.done()
    error = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    assert error["code"] == "ZonalAllocationFailed"
    assert "in this zone" in error["message"]


def test_a_pool_can_be_deleted_while_machines_are_looked_for(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ALLOCATION_S", 0.5)
    broken(cluster, "capacity", size=H100)
    cluster.put(pool_path(), pool_body())
    assert cluster.call("DELETE", pool_path()).status_code == 202
    cluster.done()
    assert cluster.call("GET", pool_path()).status_code == 404


def test_a_killed_search_for_machines_goes_on_and_its_cluster_boots(
    cluster: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(cluster, "capacity", size=H100)
    monkeypatch.setattr(life, "ALLOCATION_S", 20)
    cluster.put(pool_path(), pool_body())
    cluster.server.stop()
    cluster.done()
    stored = cluster.server.world.store.get(parse_id(pool_path()))
    assert stored
    assert stored.state == "Creating"
    monkeypatch.setattr(life, "ALLOCATION_S", 0.05)
    again = start(tmp_path / "azure", FakeBackend())
    again.done()
    found = pool_state(again), len(again.node_names())
    again.stop()
    assert found == ("Failed", 2)


# -- operations that exclude each other --------------------------------------------------------------------------------


def test_a_pool_waits_for_its_cluster(cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.put(CLUSTER, cluster_body())
    status, code, message = cluster.refusal(cluster.put(pool_path(), pool_body()))
    assert (status, code) == (409, "OperationNotAllowed")
    assert message.startswith(f"Operation is not allowed: Another operation (Updating) is in progress, {IN_PROGRESS}")


def test_a_cluster_waits_for_its_pools_and_pools_do_not_wait_for_each_other(cluster: Arm) -> None:
    cluster.backend.gate.clear()
    assert cluster.put(pool_path("one"), pool_body()).status_code == 201
    assert cluster.put(pool_path("two"), pool_body()).status_code == 201
    busy = f"Another agentpool operation (one - Creating) is in progress, {IN_PROGRESS}"
    for path, body in ((CLUSTER, cluster_body()), (pool_path("one"), pool_body(count=3))):
        status, code, message = cluster.refusal(cluster.put(path, body))
        assert (status, code) == (409, "OperationNotAllowed")
        assert busy in message
    cluster.backend.gate.set()
    cluster.done()
    assert cluster.put(CLUSTER, cluster_body()).status_code == 200
