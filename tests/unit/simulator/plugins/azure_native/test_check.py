"""Check, as in pulumi-azure-native (provider/pkg/provider/provider.go), and the SDK's defaults."""

from __future__ import annotations

import inspect
import re

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins import sdk
from simulator.plugins.azure_native.resources import DEFINITIONS, Definition
from simulator.plugins.marshal import UNKNOWN, Properties, encode
from tests.support.arm import CLUSTER as CLUSTER_PATH
from tests.support.arm import GROUP as GROUP_PATH
from tests.support.arm import Arm, cluster_body
from tests.support.azure_plugin import (
    CLUSTER,
    GROUP,
    INPUTS,
    POOL,
    ROLE,
    AzurePlugin,
    cluster_inputs,
    failure,
    pool_inputs,
    urn,
)
from tests.support.case_files import case_table

NETWORK = "azure-native:network:VirtualNetwork"


@case_table(__file__, "refused")
def test_rejects_invalid_inputs(plugin: AzurePlugin, kind: str, change: Properties, reason: str) -> None:
    """The CLI then prints `resource "x" has a problem: 'osDiskSizeGB' is too high`."""
    token, inputs = INPUTS[kind]
    request = provider_pb2.CheckRequest(urn=urn(token), news=encode(inputs | change))
    (failed,) = plugin.stub.Check(request).failures
    assert (failed.property, failed.reason[: len(reason)]) == ("", reason)


def test_a_group_gets_a_random_name_and_keeps_it(plugin: AzurePlugin) -> None:
    first, failures = plugin.check(GROUP, {"location": "eastus"}, name="ai", randomSeed=b"seed")
    assert failures == []
    assert re.fullmatch(r"ai[0-9a-f]{8}", first["resourceGroupName"])
    assert first["__createBeforeDelete"] is True
    assert first["azureApiVersion"] == "2024-03-01"
    again, _ = plugin.check(GROUP, {"location": "eastus"}, name="ai", randomSeed=b"seed")
    later, _ = plugin.check(GROUP, {"location": "eastus"}, olds=first, name="ai", randomSeed=b"other")
    assert first == again == later


def test_names_a_pool_like_its_resource_and_a_role_assignment_by_a_guid(plugin: AzurePlugin) -> None:
    pool = pool_inputs()
    del pool["agentPoolName"]
    assert plugin.check(POOL, pool, name="gpu")[0]["agentPoolName"] == "gpu"
    role, failures = plugin.check(ROLE, {"scope": "/subscriptions/s", "principalId": UNKNOWN, "roleDefinitionId": "r"})
    assert failures == []
    assert re.fullmatch(r"[0-9a-f-]{36}", role["roleAssignmentName"])


def test_autonaming_settings_take_precedence(plugin: AzurePlugin) -> None:
    Autonaming = provider_pb2.CheckRequest.AutonamingOptions
    news = {"location": "eastus"}
    proposed = Autonaming(proposed_name="chosen", mode=Autonaming.ENFORCE)
    assert plugin.check(GROUP, news, autonaming=proposed)[0]["resourceGroupName"] == "chosen"
    _, failures = plugin.check(GROUP, news, autonaming=Autonaming(mode=Autonaming.DISABLE))
    assert failures == ["missing required property 'resourceGroupName'"]


def test_takes_the_location_from_the_provider_or_the_group(plugin: AzurePlugin, arm: Arm) -> None:
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


def test_lists_the_simulated_types_for_other_types(plugin: AzurePlugin) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        plugin.check("azure-native:keyvault:Vault", {})
    assert failure(raised).startswith("Resource type azure-native:keyvault:Vault is not simulated.")
    assert all(token in failure(raised) for token in DEFINITIONS)
    inputs, _ = plugin.check("azure-native:containerservice/v20250901:AgentPool", pool_inputs())
    assert inputs["azureApiVersion"] == "2025-09-01"
    with pytest.raises(grpc.RpcError) as raised:
        plugin.check("azure-native:containerservice/v20240101:AgentPool", pool_inputs())
    assert "which has API version 2025-09-01" in failure(raised)


def test_removes_nulls_except_in_lists(plugin: AzurePlugin) -> None:
    given = {"gpuProfile": {"driver": "None", "type": None}, "nodeLabels": None, "nodeTaints": ["a", None]}
    checked, failures = plugin.check(POOL, pool_inputs(**given))
    assert failures == []
    assert checked["gpuProfile"] == {"driver": "None"}
    assert "nodeLabels" not in checked
    assert checked["nodeTaints"] == ["a", None]


@pytest.mark.parametrize("change", [{"count": 2000}, {"nodeTaints": ["gpu"]}, {"maxPods": 1}])
def test_does_not_check_unpublished_limits(plugin: AzurePlugin, arm: Arm, change: Properties) -> None:
    assert plugin.check(POOL, pool_inputs(**change))[1] == []
    arm.put(GROUP_PATH, {"location": "eastus"})
    arm.put(CLUSTER_PATH, cluster_body())
    arm.done()
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(POOL, pool_inputs(**change))
    assert 'Status=400 Code="InvalidParameter"' in failure(raised)


@pytest.mark.parametrize("name", ["-", "a" * 90])
def test_does_not_check_unpublished_limits_of_names(plugin: AzurePlugin, name: str) -> None:
    inputs = {"resourceGroupName": "rg", "virtualNetworkName": name, "location": "eastus"}
    assert plugin.check(NETWORK, inputs | {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}})[1] == []


def test_takes_no_location_from_an_unreadable_group(plugin: AzurePlugin, arm: Arm) -> None:
    arm.put(GROUP_PATH, {"location": "westus3"})
    inputs = cluster_inputs()
    del inputs["location"]
    plugin.configure(subscriptionId="00000000-0000-0000-0000-00000000beef")
    _, failures = plugin.check(CLUSTER, inputs)
    assert [text.split(".")[0] for text in failures] == ["missing required property 'location'"]


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=lambda definition: definition.sdk.token)
def test_defaults_are_those_of_the_sdk(definition: Definition) -> None:
    made = sdk.resource(definition.sdk.token)
    assert made is not None
    taken = sdk.arguments(made)
    parameters = list(inspect.signature(taken).parameters.values())
    required = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    filled = taken(**dict.fromkeys(required, "x"))
    names = {own: name for own, name in sdk.python_names(taken).items() if name not in required}
    defaults = {own: getattr(filled, name) for own, name in names.items() if getattr(filled, name) is not None}
    assert {own: value for own, value in defaults.items() if own in definition.inputs} == definition.sdk.defaults
