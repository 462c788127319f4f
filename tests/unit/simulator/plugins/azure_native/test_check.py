"""Check, as in pulumi-azure-native (provider/pkg/provider/provider.go)."""

from __future__ import annotations

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.marshal import Properties, encode
from tests.support.arm import CLUSTER as CLUSTER_PATH
from tests.support.arm import GROUP as GROUP_PATH
from tests.support.arm import Arm, cluster_body
from tests.support.azure_plugin import CLUSTER, POOL, AzurePlugin, cluster_inputs, failure, pool_inputs, urn

NETWORK = "azure-native:network:VirtualNetwork"


def test_nulls_are_left_out_at_every_depth_but_not_of_lists(plugin: AzurePlugin) -> None:
    given = {"gpuProfile": {"driver": "None", "type": None}, "nodeLabels": None, "nodeTaints": ["a", None]}
    checked, failures = plugin.check(POOL, pool_inputs(**given))
    assert failures == []
    assert checked["gpuProfile"] == {"driver": "None"}
    assert "nodeLabels" not in checked
    assert checked["nodeTaints"] == ["a", None]


def test_required_property_that_is_null_is_missing(plugin: AzurePlugin) -> None:
    _, failures = plugin.check(CLUSTER, cluster_inputs(agentPoolProfiles=[{"name": None}]))
    assert failures == ["missing required property 'agentPoolProfiles[0].name'"]


@pytest.mark.parametrize("change", [{"osDiskSizeGB": 4096}, {"vmSze": "x"}, {"resourceName": None}])
def test_failures_name_the_property_in_their_text_alone(plugin: AzurePlugin, change: Properties) -> None:
    """So the CLI prints `resource "x" has a problem: 'osDiskSizeGB' is too high`."""
    request = provider_pb2.CheckRequest(urn=urn(POOL), news=encode(pool_inputs(**change)))
    (failed,) = plugin.stub.Check(request).failures
    assert failed.property == ""
    assert next(iter(change)) in failed.reason


@pytest.mark.parametrize("change", [{"count": 2000}, {"nodeTaints": ["gpu"]}, {"maxPods": 1}])
def test_limits_that_azure_does_not_publish_are_left_to_it(plugin: AzurePlugin, arm: Arm, change: Properties) -> None:
    assert plugin.check(POOL, pool_inputs(**change))[1] == []
    arm.put(GROUP_PATH, {"location": "eastus"})
    arm.put(CLUSTER_PATH, cluster_body())
    arm.done()
    with pytest.raises(grpc.RpcError) as raised:
        plugin.create(POOL, pool_inputs(**change))
    assert 'Status=400 Code="InvalidParameter"' in failure(raised)


@pytest.mark.parametrize("name", ["-", "a" * 90])
def test_names_are_left_to_azure_too_where_it_publishes_less(plugin: AzurePlugin, name: str) -> None:
    inputs = {"resourceGroupName": "rg", "virtualNetworkName": name, "location": "eastus"}
    assert plugin.check(NETWORK, inputs | {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}})[1] == []


def test_group_that_may_not_be_read_gives_no_location(plugin: AzurePlugin, arm: Arm) -> None:
    arm.put(GROUP_PATH, {"location": "westus3"})
    inputs = cluster_inputs()
    del inputs["location"]
    plugin.configure(subscriptionId="00000000-0000-0000-0000-00000000beef")
    _, failures = plugin.check(CLUSTER, inputs)
    assert [text.split(".")[0] for text in failures] == ["missing required property 'location'"]
