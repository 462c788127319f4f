"""Refresh, import and update, as in pulumi-azure-native (provider.go, convert/ and crud/crud.go of provider/pkg)."""

from __future__ import annotations

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from simulator.azure.types.role_assignment.allowed import built_in
from simulator.plugins.azure_native import convert
from simulator.plugins.azure_native.resources import DEFINITIONS
from simulator.plugins.marshal import Properties, decode
from tests.support import networks as net
from tests.support.arm import CLUSTER as CLUSTER_PATH
from tests.support.arm import GROUP as GROUP_PATH
from tests.support.arm import SUBSCRIPTION, Arm, cluster_body
from tests.support.azure_plugin import CLUSTER, GROUP, ROLE, AzurePlugin, cluster_inputs, failure
from tests.support.blob_account import IDENTITY

NETWORK = "azure-native:network:VirtualNetwork"
MACHINE = "azure-native:compute:VirtualMachine"
OTHER = f"{IDENTITY}-2"
NODES = {"name": "nodes", "addressPrefix": "10.16.0.0/24"}


def network_inputs(**more: object) -> Properties:
    name = net.NETWORK.rpartition("/")[2]
    base: Properties = {"resourceGroupName": "rg", "virtualNetworkName": name, "location": "eastus"}
    return base | {"addressSpace": {"addressPrefixes": ["10.16.0.0/16"]}, **more}


@pytest.fixture
def group(plugin: AzurePlugin) -> AzurePlugin:
    plugin.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    return plugin


def test_separate_subnets_are_not_inputs_of_their_network(group: AzurePlugin, arm: Arm) -> None:
    inputs = network_inputs()
    identity, outputs = group.create(NETWORK, inputs)
    assert outputs["subnets"] == []
    net.make(arm, f"{net.NETWORK}/subnets/nodes", net.subnet_body("10.16.0.0/24"))
    read = group.read(NETWORK, identity, outputs, inputs)
    assert decode(read.inputs) == inputs
    assert [each["name"] for each in decode(read.properties)["subnets"]] == ["nodes"]


def test_a_refresh_reads_inline_subnets(group: AzurePlugin, arm: Arm) -> None:
    inputs = network_inputs(subnets=[NODES])
    identity, outputs = group.create(NETWORK, inputs)
    net.make(arm, f"{net.NETWORK}/subnets/other", net.subnet_body("10.16.1.0/24"))
    found = decode(group.read(NETWORK, identity, outputs, inputs).inputs)["subnets"]
    assert found[0] == NODES
    assert [each["name"] for each in found] == ["nodes", "other"]


def test_empty_inputs_are_not_an_import(group: AzurePlugin) -> None:
    outputs = decode(group.read(GROUP, GROUP_PATH, {}, None).properties)
    assert decode(group.read(GROUP, GROUP_PATH, outputs, {}).inputs) == {}


def test_an_import_omits_empty_values(group: AzurePlugin, arm: Arm) -> None:
    arm.put(CLUSTER_PATH, cluster_body(addonProfiles={"azurepolicy": {"enabled": False, "config": {}}}))
    arm.done()
    shown = decode(group.read(CLUSTER, CLUSTER_PATH, {}, None).properties)
    assert shown["addonProfiles"]["azurepolicy"]["config"] == {}
    imported = decode(group.read(CLUSTER, CLUSTER_PATH, {}, None).inputs)
    assert imported["addonProfiles"] == {"azurepolicy": {"enabled": False}}
    assert "azureApiVersion" not in imported


def test_an_import_takes_names_from_the_given_id(group: AzurePlugin, arm: Arm) -> None:
    arm.put(CLUSTER_PATH, cluster_body())
    arm.done()
    given = CLUSTER_PATH.replace("/resourceGroups/rg/", "/RESOURCEGROUPS/RG/")
    imported = decode(group.read(CLUSTER, given, {}, None).inputs)
    assert (imported["resourceGroupName"], imported["resourceName"]) == ("RG", "aks")


def test_an_imported_scope_has_no_leading_slash(group: AzurePlugin) -> None:
    role = {
        "principalId": SUBSCRIPTION.object_id,
        "principalType": "ServicePrincipal",
        "roleDefinitionId": next(iter(built_in())),
    }
    identity, _ = group.create(
        ROLE, role | {"scope": GROUP_PATH, "roleAssignmentName": f"{1:08}-0000-0000-0000-{1:012}"}
    )
    assert decode(group.read(ROLE, identity, {}, None).inputs)["scope"] == GROUP_PATH.removeprefix("/")


def test_rejects_an_import_with_an_id_of_another_type(group: AzurePlugin) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        group.read(NETWORK, GROUP_PATH, {}, None)
    assert failure(raised).startswith(f"failed to parse '{GROUP_PATH}' against the path '/subscriptions/")


def test_the_program_of_an_import_changes_nothing(group: AzurePlugin, arm: Arm) -> None:
    """The SDK may send defaults that Azure does not show."""
    net.make_network(arm)
    read = group.read(NETWORK, net.NETWORK, {}, None)
    imported = decode(read.inputs)
    assert "enableVmProtection" not in imported
    program, failures = group.check(NETWORK, imported | dict(DEFINITIONS[NETWORK].sdk.defaults), olds=imported)
    assert failures == []
    answer = group.diff(NETWORK, imported, program, state=decode(read.properties))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


def identities(*ids: str) -> Properties:
    return {"identity": {"type": "UserAssigned", "userAssignedIdentities": list(ids)}}


def test_sends_null_for_a_removed_identity(group: AzurePlugin) -> None:
    definition = DEFINITIONS[MACHINE]
    sent = convert.body(definition, identities("b", "a"), identities("b", "c"))
    assert sent["identity"]["userAssignedIdentities"] == {"a": {}, "b": {}, "c": None}
    assert convert.body(definition, identities("a"), {})["identity"]["userAssignedIdentities"] == {"a": {}}


def test_replaces_the_identity_of_a_machine_by_patch(group: AzurePlugin, arm: Arm) -> None:
    """Resource Manager accepts null only by PATCH (pulumi-azure-native#4640)."""
    net.make_network(arm)
    net.make(arm, net.INTERFACE, net.interface_body())
    for each in (IDENTITY, OTHER):
        net.make(arm, each, {"location": "eastus"})
    own = {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
    net.make(arm, net.MACHINE, net.machine_body() | {"identity": own})
    read = group.read(MACHINE, net.MACHINE, {}, None)
    before, outputs = decode(read.inputs), decode(read.properties)
    assert before["identity"]["userAssignedIdentities"] == [IDENTITY]
    updated = group.update(MACHINE, net.MACHINE, outputs, before | identities(OTHER), old_inputs=before)
    assert list(updated["identity"]["userAssignedIdentities"]) == [OTHER]


def test_cannot_replace_the_identity_of_a_cluster(group: AzurePlugin) -> None:
    _, outputs = group.create(CLUSTER, cluster_inputs(), name="aks")
    olds, news = cluster_inputs(**identities(IDENTITY)), cluster_inputs(**identities(OTHER))
    with pytest.raises(grpc.RpcError) as raised:
        group.update(CLUSTER, CLUSTER_PATH, outputs, news, old_inputs=olds)
    assert "Only 'tags' can be patched" in failure(raised)
