from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, status_pb2

from simulator.plugins.marshal import UNKNOWN, decode, encode
from simulator.world.faults import new_fault
from tests.support.arm import CLUSTER as CLUSTER_PATH
from tests.support.arm import GROUP as GROUP_PATH
from tests.support.arm import SUBSCRIPTION, TOKEN, Arm, aks_id, cluster_body, pool_body, pool_path
from tests.support.azure_plugin import (
    CLUSTER,
    GROUP,
    POOL,
    ROLE,
    AzurePlugin,
    cluster_inputs,
    failure,
    pool_inputs,
    urn,
)
from tests.support.sizes import H100

ADMIN = "azure-native:containerservice:listManagedClusterAdminCredentials"
USER = "azure-native:containerservice:listManagedClusterUserCredentials"
AUTHORIZATION = "providers/Microsoft.Authorization"
FEATURE = "azure-native:features:getSubscriptionFeatureRegistration"


def test_created_resources_have_the_ids_and_outputs_of_arm(plugin: AzurePlugin, arm: Arm) -> None:
    _, cluster = plugin.stack()
    identity, pool = plugin.create(POOL, pool_inputs())
    assert identity == aks_id(pool_path())
    assert (cluster["name"], cluster["location"], cluster["azureApiVersion"]) == ("aks", "eastus", "2025-09-01")
    assert cluster["identityProfile"]["kubeletidentity"]["objectId"]
    assert (pool["name"], pool["provisioningState"], pool["osSKU"]) == ("gpu", "Succeeded", "Ubuntu")
    assert pool["type"] == "Microsoft.ContainerService/managedClusters/agentPools"
    assert "properties" not in pool
    assert len(arm.node_names()) == 4


def test_a_preview_has_only_the_inputs(plugin: AzurePlugin) -> None:
    identity, shown = plugin.create(POOL, pool_inputs(count=UNKNOWN), preview=True)
    assert identity == ""
    assert shown["count"] is UNKNOWN
    assert shown["provisioningState"] is UNKNOWN
    assert (shown["mode"], shown["gpuProfile"]) == ("User", {"driver": "None"})


def test_the_preview_of_an_update_keeps_stable_outputs(plugin: AzurePlugin) -> None:
    _, cluster = plugin.stack()
    shown = plugin.update(CLUSTER, CLUSTER_PATH, cluster, cluster_inputs(tags={"a": "b"}), preview=True)
    assert (shown["name"], shown["location"], shown["fqdn"]) == ("aks", "eastus", UNKNOWN)


def test_updates_a_pool_and_reports_the_refusals_of_arm(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    identity, pool = plugin.create(POOL, pool_inputs())
    assert plugin.update(POOL, identity, pool, pool_inputs(count=3))["count"] == 3
    assert len(arm.node_names()) == 5
    with pytest.raises(grpc.RpcError) as raised:
        plugin.update(POOL, identity, pool, pool_inputs(gpuProfile={"driver": "Install"}))
    message = "Changing property 'properties.gpuProfile.driver' is not allowed."
    assert failure(raised) == f'Status=400 Code="PropertyChangeNotAllowed" Message="{message}"'


def test_converts_names_with_hyphens(plugin: AzurePlugin, arm: Arm) -> None:
    _, cluster = plugin.stack()
    profile = {"expander": "priority", "scaleDownUnneededTime": "3m", "maxGracefulTerminationSec": "60"}
    updated = plugin.update(CLUSTER, CLUSTER_PATH, cluster, cluster_inputs(autoScalerProfile=profile))
    assert updated["autoScalerProfile"] == profile
    sent = {"expander": "priority", "scale-down-unneeded-time": "3m", "max-graceful-termination-sec": "60"}
    assert arm.get(CLUSTER_PATH)["properties"]["autoScalerProfile"] == sent


def test_rejects_an_existing_resource(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    arm.put(pool_path(), pool_body())
    arm.done()
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(POOL, pool_inputs())
    assert failure(raised) == f"cannot create already existing resource '{pool_path()}'"


def test_resumes_an_interrupted_creation(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    arm.backend.gate.clear()
    request = provider_pb2.CreateRequest(urn=urn(POOL), properties=encode(pool_inputs()), timeout=1)
    with pytest.raises(grpc.RpcError) as raised:
        plugin.stub.Create(request)
    assert failure(raised) == "operation timed out"
    threading.Timer(0.3, arm.backend.gate.set).start()
    identity, pool = plugin.create(POOL, pool_inputs())
    assert (identity, pool["provisioningState"]) == (aks_id(pool_path()), "Succeeded")


def test_cancel_ends_a_wait(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    arm.backend.gate.clear()
    canceller = threading.Timer(0.5, plugin.cancel)
    canceller.start()
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(POOL, pool_inputs())
    canceller.join()  # before the channel is closed
    assert failure(raised).startswith("operation canceled")


def test_a_failed_operation_keeps_the_resource_in_the_state(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    arm.server.world.faults.fault(new_fault("capacity", size=H100))
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(POOL, pool_inputs())
    assert failure(raised).startswith(
        'Status=200 Code="OverconstrainedAllocationRequest" Message="Allocation failed. VM'
    )
    details = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    failed = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(details).details[0].Unpack(failed)
    assert (failed.id, decode(failed.properties)["provisioningState"]) == (pool_path(), "Failed")
    arm.server.world.faults.heal()
    updated = plugin.update(POOL, failed.id, decode(failed.properties), pool_inputs())
    assert updated["provisioningState"] == "Succeeded"


def test_a_refresh_finds_drift_without_defaults(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    inputs = pool_inputs()
    identity, pool = plugin.create(POOL, inputs)
    same = plugin.read(POOL, identity, pool, inputs)
    assert (same.id, decode(same.inputs), decode(same.properties)) == (identity, inputs, pool)
    live = arm.get(pool_path())  # a PUT accepts read-only properties
    live["properties"] |= {"count": 5, "tags": {"by": "hand"}}
    assert arm.put(pool_path(), live).status_code == 200
    arm.done()
    drifted = plugin.read(POOL, identity, pool, inputs)
    assert decode(drifted.inputs) == inputs | {"count": 5, "tags": {"by": "hand"}}
    arm.call("DELETE", pool_path())
    arm.done()
    assert plugin.read(POOL, identity, pool, inputs).id == ""


def test_an_import_reads_inputs_from_azure(plugin: AzurePlugin, arm: Arm) -> None:
    arm.put(GROUP_PATH, {"location": "eastus", "tags": {"a": "b"}})
    arm.put(CLUSTER_PATH, cluster_body())
    arm.done()
    group = decode(plugin.read(GROUP, GROUP_PATH, {}, None).inputs)
    assert group == {"resourceGroupName": "rg", "location": "eastus", "tags": {"a": "b"}}
    cluster = decode(plugin.read(CLUSTER, CLUSTER_PATH, {}, None).inputs)
    assert (cluster["resourceGroupName"], cluster["resourceName"], cluster["dnsPrefix"]) == ("rg", "aks", "dev")
    assert "fqdn" not in cluster
    assert plugin.diff(CLUSTER, cluster, cluster).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_deletes_a_resource_that_may_be_missing(plugin: AzurePlugin, arm: Arm) -> None:
    plugin.stack()
    identity, _ = plugin.create(POOL, pool_inputs())
    plugin.delete(POOL, identity)
    assert len(arm.node_names()) == 2
    plugin.delete(POOL, identity)
    plugin.delete(GROUP, GROUP_PATH)
    assert arm.server.world.store.all() == []


def test_creates_a_role_assignment_for_the_deployer(plugin: AzurePlugin) -> None:
    plugin.stack()
    me = plugin.invoke("azure-native:authorization:getClientConfig", {})
    assert me == {
        "clientId": SUBSCRIPTION.client_id,
        "objectId": SUBSCRIPTION.object_id,
        "subscriptionId": SUBSCRIPTION.subscription_id,
        "tenantId": SUBSCRIPTION.tenant_id,
    }
    inputs, failures = plugin.check(
        ROLE,
        {
            "scope": CLUSTER_PATH,
            "principalId": me["objectId"],
            "principalType": "ServicePrincipal",
            "roleDefinitionId": f"/{AUTHORIZATION}/roleDefinitions/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b",
        },
    )
    assert failures == []
    identity, role = plugin.create(ROLE, inputs)
    assert (
        identity == f"{CLUSTER_PATH}/providers/Microsoft.Authorization/roleAssignments/{inputs['roleAssignmentName']}"
    )
    assert (role["scope"], role["principalId"]) == (CLUSTER_PATH, me["objectId"])


def test_functions_read_from_azure(plugin: AzurePlugin) -> None:
    plugin.stack()
    where = {"resourceGroupName": "rg", "resourceName": "aks"}
    assert plugin.invoke(ADMIN, where)["kubeconfigs"][0]["name"] == "clusterAdmin"
    assert plugin.invoke(USER, where | {"format": "exec"})["kubeconfigs"][0]["name"] == "clusterUser"
    feature = {"providerNamespace": "Microsoft.ContainerService", "featureName": "AKSInfinibandSupport"}
    assert plugin.invoke(FEATURE, feature)["properties"]["state"] == "Registered"
    assert plugin.invoke("azure-native:authorization:getClientToken", {}) == {"token": TOKEN}


@pytest.mark.parametrize(
    ("token", "arguments", "message"),
    [
        ("azure-native:storage:listStorageAccountSAS", {}, "is not simulated. The simulator has: azure-native:"),
        (ADMIN, {"resourceGroupName": "rg"}, "missing required property 'resourceName'"),
        (ADMIN, {"resourceGroupName": "rg", "resourceName": "aks", "x": 1}, "unknown property 'x'"),
        (ADMIN, {"resourceGroupName": "rg", "resourceName": "no"}, f"request failed {CLUSTER_PATH[:-3]}no/"),
    ],
)
def test_rejects_invalid_functions(plugin: AzurePlugin, token: str, arguments: dict[str, Any], message: str) -> None:
    plugin.stack()
    with pytest.raises(grpc.RpcError) as raised:
        plugin.invoke(token, arguments)
    assert message in failure(raised)


def test_an_error_without_a_simulator_has_the_commands(plugin: AzurePlugin, arm: Arm) -> None:
    arm.server.stop()
    answer = plugin.stub.CheckConfig(
        provider_pb2.CheckRequest(urn="urn:pulumi:dev::p::pulumi:providers:azure-native::x")
    )
    reason = answer.failures[0].reason
    assert reason.startswith(f"no simulator is running at {arm.server.endpoint}")
    assert "make up" in reason
    assert "az login" in reason


def test_an_error_outside_the_simulator_names_the_variable(
    plugin: AzurePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIMULATOR_ARM_ENDPOINT")
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"})
    assert failure(raised).startswith("no simulator is running (SIMULATOR_ARM_ENDPOINT is not set)")
