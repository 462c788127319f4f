from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from simulator.azure.ids import parse_id
from simulator.azure.types.agent_pool import life
from simulator.plugins.azure_native import arm as plugin_arm
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, FakeBackend, cluster_body, pool_body, pool_path, start
from tests.support.azure_plugin import GROUP as GROUP_TYPE
from tests.support.azure_plugin import AzurePlugin, failure
from tests.support.networks import make
from tests.support.sizes import H100

IN_PROGRESS = "please wait for it to finish before starting a new operation"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ALLOCATION_S", 0.05)
    monkeypatch.setattr(plugin_arm, "_FIRST_PAUSE_S", 0.01)


def inject(arm: Arm, kind: str, **options: Any) -> None:
    arm.server.world.faults.fault(new_fault(kind, **options))


def heal(arm: Arm) -> None:
    assert arm.server.world.faults.heal()


def pool_state(arm: Arm, name: str = "gpu") -> str:
    state: str = arm.get(pool_path(name))["properties"]["provisioningState"]
    return state


# -- throttling --------------------------------------------------------------------------------------------------------


def test_throttled_requests_get_the_seconds_to_wait(arm: Arm) -> None:
    faults, now = arm.server.world.faults, time.time()
    faults.clock = lambda: now
    inject(arm, "throttle", seconds=30)
    now += 12.5
    answer = arm.put(GROUP, {"location": "eastus"})
    status, code, message = arm.refusal(answer)
    assert (status, code, answer.headers["Retry-After"]) == (429, "SubscriptionRequestsThrottled", "18")
    assert message.startswith(f"Number of 'write' requests for subscription '{SUBSCRIPTION.subscription_id}'")
    assert "Please try again after '18' seconds" in message
    assert "'read' requests" in arm.refusal(arm.call("GET", GROUP))[2]
    now += 18
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201


def test_the_plugin_waits_as_long_as_retry_after(plugin: AzurePlugin, arm: Arm) -> None:
    inject(arm, "throttle", seconds=1)
    began = time.monotonic()
    identity, _ = plugin.create(GROUP_TYPE, {"resourceGroupName": "rg", "location": "eastus"})
    assert identity == GROUP
    assert time.monotonic() - began >= 1


def test_the_plugin_does_not_wait_more_than_two_minutes(plugin: AzurePlugin, arm: Arm) -> None:
    inject(arm, "throttle", seconds=3600)
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(GROUP_TYPE, {"resourceGroupName": "rg", "location": "eastus"})
    assert failure(raised).startswith(f"cannot check existence of resource '{GROUP}': status code 429, {{")
    assert '"code": "SubscriptionRequestsThrottled", "message": "Number of ' in failure(raised)
    heal(arm)
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
def test_the_plugin_retries_transient_errors(
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


def test_a_pool_fails_without_capacity_and_can_be_retried(cluster: Arm) -> None:
    inject(cluster, "capacity", size=H100)
    accepted = cluster.put(pool_path(), pool_body())
    assert accepted.status_code == 201, "the operation fails later"
    cluster.done()
    operation = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()
    assert (operation["status"], operation["error"]["code"]) == ("Failed", "AllocationFailed")
    assert "sufficient capacity for the requested VM size in this region" in operation["error"]["message"]
    assert pool_state(cluster) == "Failed"
    make(cluster, pool_path("other"), pool_body(vmSize="Standard_D4ads_v5", gpuProfile=None))
    assert len(cluster.node_names()) == 4, "two of the other pool, none of the failed one"
    heal(cluster)
    make(cluster, pool_path(), pool_body())
    assert pool_state(cluster) == "Succeeded"
    assert len(cluster.node_names()) == 6


def failure_of(cluster: Arm, path: str, body: dict[str, Any]) -> dict[str, str]:
    accepted = cluster.put(path, body)
    cluster.done()
    found: dict[str, str] = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()["error"]
    return found


def test_the_error_lists_constraints_for_ephemeral_disks(cluster: Arm) -> None:
    inject(cluster, "capacity", size=H100)
    error = failure_of(cluster, pool_path(), pool_body(osDiskType="Ephemeral"))
    assert error["code"] == "OverconstrainedAllocationRequest"
    assert "\n  - Differencing (Ephemeral) Disks\n  - Networking Constraints" in error["message"]
    assert "Low Priority" not in error["message"]
    zonal = failure_of(cluster, pool_path("z"), pool_body(osDiskType="Ephemeral", availabilityZones=["1"]))
    assert zonal["code"] == "OverconstrainedZonalAllocationRequest"
    assert "applied are:\n  - Availability Zone\n" in zonal["message"]


def test_a_pool_fails_if_its_nodes_cannot_be_set_up(cluster: Arm) -> None:
    before = cluster.node_names()
    inject(cluster, "node-setup", code=50)
    error = failure_of(cluster, pool_path(), pool_body())
    assert error["code"] == "VMExtensionProvisioningError"
    assert "exit status=50\n" in error["message"]
    assert (pool_state(cluster), cluster.node_names()) == ("Failed", before)
    heal(cluster)
    make(cluster, pool_path(), pool_body())
    assert pool_state(cluster) == "Succeeded"


def test_a_policy_requires_a_tag_on_all_resource_groups(group: Arm) -> None:
    inject(group, "policy", tag="CostCenter")
    other = f"{GROUP}-other"
    assert group.refusal(group.put(other, {"location": "eastus"}))[:2] == (403, "RequestDisallowedByPolicy")
    assert group.put(other, {"location": "eastus", "tags": {"costcenter": "4711"}}).status_code == 201
    error = failure_of(group, CLUSTER, cluster_body())
    assert error["code"] == "ReconcileResourceGroupError"
    assert "tags[CostCenter]" in error["message"]
    make(group, CLUSTER, cluster_body() | {"tags": {"CostCenter": "4711"}})
    assert group.get(CLUSTER)["properties"]["provisioningState"] == "Succeeded"


def test_a_failed_pool_keeps_its_nodes_and_can_shrink(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body(count=2))
    inject(cluster, "capacity", size=H100)
    make(cluster, pool_path(), pool_body(count=5))
    assert (pool_state(cluster), len(cluster.node_names())) == ("Failed", 4)
    make(cluster, pool_path(), pool_body(count=1))
    assert (pool_state(cluster), len(cluster.node_names())) == ("Succeeded", 3)


def test_a_zone_without_capacity_has_a_different_code(cluster: Arm) -> None:
    inject(cluster, "capacity", size=H100)
    error = failure_of(cluster, pool_path(), pool_body(availabilityZones=["1"]))
    assert error["code"] == "ZonalAllocationFailed"
    assert "in this zone" in error["message"]


def test_a_pool_can_be_deleted_during_allocation(cluster: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ALLOCATION_S", 0.5)
    inject(cluster, "capacity", size=H100)
    cluster.put(pool_path(), pool_body())
    assert cluster.call("DELETE", pool_path()).status_code == 202
    cluster.done()
    assert cluster.call("GET", pool_path()).status_code == 404


def test_a_killed_allocation_resumes_at_the_next_start(
    cluster: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject(cluster, "capacity", size=H100)
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
