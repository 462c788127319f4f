"""The plugin's Check and Diff."""

from __future__ import annotations

import re
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.azure_native.resources import DEFINITIONS
from simulator.plugins.marshal import UNKNOWN
from tests.support.arm import GROUP as GROUP_PATH
from tests.support.arm import Arm
from tests.support.azure_plugin import (
    CLUSTER,
    GROUP,
    POOL,
    ROLE,
    AzurePlugin,
    cluster_inputs,
    failure,
    pool_inputs,
)

Kind = provider_pb2.PropertyDiff
TAINTS_CHANGED = {"nodeTaints[0]": Kind.UPDATE, "nodeTaints[1]": Kind.ADD}
NAMED_GROUP = {"resourceGroupName": "a", "location": "eastus"}


def test_group_gets_a_random_name_that_stays(plugin: AzurePlugin) -> None:
    first, failures = plugin.check(GROUP, {"location": "eastus"}, name="ai", randomSeed=b"seed")
    assert failures == []
    assert re.fullmatch(r"ai[0-9a-f]{8}", first["resourceGroupName"])
    assert first["__createBeforeDelete"] is True
    assert first["azureApiVersion"] == "2024-03-01"
    again, _ = plugin.check(GROUP, {"location": "eastus"}, name="ai", randomSeed=b"seed")
    later, _ = plugin.check(GROUP, {"location": "eastus"}, olds=first, name="ai", randomSeed=b"other")
    assert first == again == later


def test_pool_is_named_as_the_resource_and_a_role_assignment_by_a_guid(plugin: AzurePlugin) -> None:
    pool = pool_inputs()
    del pool["agentPoolName"]
    assert plugin.check(POOL, pool, name="gpu")[0]["agentPoolName"] == "gpu"
    role, failures = plugin.check(ROLE, {"scope": "/subscriptions/s", "principalId": UNKNOWN, "roleDefinitionId": "r"})
    assert failures == []
    assert re.fullmatch(r"[0-9a-f-]{36}", role["roleAssignmentName"])


def test_autonaming_settings_of_the_stack_go_first(plugin: AzurePlugin) -> None:
    Autonaming = provider_pb2.CheckRequest.AutonamingOptions
    news = {"location": "eastus"}
    proposed = Autonaming(proposed_name="chosen", mode=Autonaming.ENFORCE)
    assert plugin.check(GROUP, news, autonaming=proposed)[0]["resourceGroupName"] == "chosen"
    _, failures = plugin.check(GROUP, news, autonaming=Autonaming(mode=Autonaming.DISABLE))
    assert failures == ["missing required property 'resourceGroupName'"]


def test_location_comes_from_the_provider_or_the_group(plugin: AzurePlugin, arm: Arm) -> None:
    inputs = cluster_inputs()
    del inputs["location"]
    _, failures = plugin.check(CLUSTER, inputs)
    assert failures == [
        "missing required property 'location'. Either set it explicitly or configure it with "
        "'pulumi config set azure-native:location <value>'."
    ]
    assert plugin.check(CLUSTER, inputs | {"resourceGroupName": UNKNOWN})[0]["location"] is UNKNOWN
    arm.put(GROUP_PATH, {"location": "westus3"})
    assert plugin.check(CLUSTER, inputs)[0]["location"] == "westus3"
    plugin.configure(location="eastus2")
    assert plugin.check(CLUSTER, inputs)[0]["location"] == "eastus2"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"vmSze": "x"}, "unknown property 'vmSze' (or not simulated); did you mean 'vmSize'?"),
        ({"provisioningState": "x"}, "unknown property 'provisioningState' (or not simulated)"),
        ({"gpuProfile": {"drive": "None"}}, "unknown property 'gpuProfile.drive' (or not simulated); did you mean"),
        ({"count": "two"}, "'count' should be of type 'integer' but got a string"),
        ({"count": 2.5}, "'count' must be an integer but got 2.500000"),
        ({"osDiskSizeGB": 4096}, "'osDiskSizeGB' is too high (4096.000000 > 2048.000000)"),
        ({"osDiskSizeGB": -1}, "'osDiskSizeGB' is too low (-1.000000 < 0.000000)"),
        ({"nodeTaints": "a=b:NoSchedule"}, "'nodeTaints' should be of type 'array' but got a string"),
        ({"agentPoolName": "Bad_Name"}, "'agentPoolName' does not match expression"),
        ({"resourceName": None}, "missing required property 'resourceName'"),
    ],
)
def test_check_refuses(plugin: AzurePlugin, change: dict[str, Any], reason: str) -> None:
    _, failures = plugin.check(POOL, pool_inputs(**change))
    assert len(failures) == 1
    assert failures[0].startswith(reason)


def test_check_keeps_unknowns(plugin: AzurePlugin) -> None:
    inputs, failures = plugin.check(POOL, pool_inputs(count=UNKNOWN))
    assert failures == []
    assert inputs["count"] is UNKNOWN


def test_types_that_are_not_simulated_say_what_is(plugin: AzurePlugin) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        plugin.check("azure-native:keyvault:Vault", {})
    assert failure(raised).startswith("Resource type azure-native:keyvault:Vault is not simulated.")
    assert all(token in failure(raised) for token in DEFINITIONS)
    inputs, _ = plugin.check("azure-native:containerservice/v20250901:AgentPool", pool_inputs())
    assert inputs["azureApiVersion"] == "2025-09-01"
    with pytest.raises(grpc.RpcError) as raised:
        plugin.check("azure-native:containerservice/v20240101:AgentPool", pool_inputs())
    assert "only API version 2025-09-01 is" in failure(raised)


def _kinds(answer: provider_pb2.DiffResponse) -> dict[str, int]:
    return {path: change.kind for path, change in answer.detailedDiff.items()}


@pytest.mark.parametrize(
    ("token", "olds", "change", "expected"),
    [
        (POOL, pool_inputs(), {"count": 3}, {"count": Kind.UPDATE}),
        (POOL, pool_inputs(), {"vmSize": "Standard_NC4as_T4_v3"}, {"vmSize": Kind.UPDATE_REPLACE}),
        (POOL, pool_inputs(), {"gpuInstanceProfile": "MIG1g"}, {"gpuInstanceProfile": Kind.ADD_REPLACE}),
        (POOL, pool_inputs(), {"agentPoolName": "other"}, {"agentPoolName": Kind.UPDATE_REPLACE}),
        (POOL, pool_inputs(), {"gpuProfile": {"driver": "Install"}}, {"gpuProfile.driver": Kind.UPDATE}),
        (POOL, pool_inputs(), {"osDiskType": "Ephemeral"}, {"osDiskType": Kind.ADD}),
        (POOL, pool_inputs(), {"count": UNKNOWN}, {"count": Kind.UPDATE}),
        (
            POOL,
            pool_inputs(),
            {"nodeTaints": ["a:NoSchedule", "b:NoSchedule"]},
            TAINTS_CHANGED,
        ),
        (CLUSTER, cluster_inputs(), {"dnsPrefix": "x"}, {"dnsPrefix": Kind.UPDATE_REPLACE}),
        (CLUSTER, cluster_inputs(), {"location": "East US"}, {}),
        (CLUSTER, cluster_inputs(), {"location": "westus3"}, {"location": Kind.UPDATE_REPLACE}),
        (
            CLUSTER,
            cluster_inputs(networkProfile={"podCidr": "10.1.0.0/16", "loadBalancerSku": "standard"}),
            {"networkProfile": {"podCidr": "10.2.0.0/16", "loadBalancerSku": "basic"}},
            {"networkProfile.podCidr": Kind.UPDATE_REPLACE, "networkProfile.loadBalancerSku": Kind.UPDATE},
        ),
        (CLUSTER, cluster_inputs(), {"disableLocalAccounts": True}, {"disableLocalAccounts": Kind.ADD}),
        (GROUP, {"resourceGroupName": "a", "location": "eastus"}, {"tags": {"a": "b"}}, {"tags": Kind.ADD}),
        (
            GROUP,
            {"resourceGroupName": "a", "location": "eastus"},
            {"location": "westus3"},
            {"location": Kind.UPDATE_REPLACE},
        ),
        (ROLE, {"scope": "/a", "principalId": "p"}, {"principalId": "q"}, {"principalId": Kind.UPDATE_REPLACE}),
        (ROLE, {"scope": "/a", "principalId": "p"}, {"scope": "/b"}, {"scope": Kind.UPDATE_REPLACE}),
    ],
)
def test_diff(
    plugin: AzurePlugin, token: str, olds: dict[str, Any], change: dict[str, Any], expected: dict[str, int]
) -> None:
    answer = plugin.diff(token, olds, olds | change)
    assert _kinds(answer) == expected
    replacing = [path for path, kind in expected.items() if kind in (Kind.UPDATE_REPLACE, Kind.ADD_REPLACE)]
    assert list(answer.replaces) == sorted(replacing)
    assert answer.changes == (provider_pb2.DiffResponse.DIFF_SOME if expected else provider_pb2.DiffResponse.DIFF_NONE)
    assert answer.deleteBeforeReplace == bool(replacing)


def test_random_name_lets_the_new_one_come_first(plugin: AzurePlugin) -> None:
    olds = {"resourceGroupName": "ai1234", "location": "eastus", "__createBeforeDelete": True}
    answer = plugin.diff(GROUP, olds, olds | {"location": "westus3"})
    assert list(answer.replaces) == ["location"]
    assert not answer.deleteBeforeReplace
