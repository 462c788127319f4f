"""Registries and storage through the plugin: names, replacements, outputs, functions."""

from __future__ import annotations

import grpc
import pytest

from simulator.plugins.marshal import Properties
from tests.support.azure_plugin import (
    ACCOUNT,
    ACCOUNT_INPUTS,
    CONTAINER,
    CONTAINER_INPUTS,
    GROUP,
    OF_ACCOUNT,
    REGISTRY,
    REGISTRY_INPUTS,
    AzurePlugin,
    failure,
)

GET_ACCOUNT = "azure-native:storage:getStorageAccount"
KEYS = "azure-native:storage:listStorageAccountKeys"
SERVICE_SAS = "azure-native:storage:listStorageAccountServiceSAS"


@pytest.fixture
def group(plugin: AzurePlugin) -> AzurePlugin:
    plugin.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    return plugin


@pytest.mark.parametrize(
    ("token", "inputs", "version"),
    [
        (REGISTRY, REGISTRY_INPUTS, "2023-01-01-preview"),
        (ACCOUNT, ACCOUNT_INPUTS, "2024-01-01"),
        (CONTAINER, CONTAINER_INPUTS, "2024-01-01"),
    ],
)
def test_default_api_versions(group: AzurePlugin, token: str, inputs: Properties, version: str) -> None:
    checked, problems = group.check(token, inputs)
    assert not problems
    assert checked["azureApiVersion"] == version


def test_registry(group: AzurePlugin) -> None:
    identity, outputs = group.create(REGISTRY, REGISTRY_INPUTS)
    assert identity.endswith("/registries/aionaks")
    assert outputs["loginServer"] == "aionaks.azurecr.io"
    assert outputs["adminUserEnabled"] is False


def test_account_container_and_its_sas(group: AzurePlugin) -> None:
    _, account = group.create(ACCOUNT, ACCOUNT_INPUTS)
    assert account["primaryEndpoints"]["blob"].endswith("/models/")
    assert account["enableHttpsTrafficOnly"] is True, "the SDK's name, which is not Resource Manager's"
    assert account["provisioningState"] == "Succeeded"
    identity, _ = group.create(CONTAINER, CONTAINER_INPUTS)
    assert identity.endswith("/storageAccounts/models/blobServices/default/containers/data")
    keys = group.invoke(KEYS, dict(OF_ACCOUNT))["keys"]
    assert [key["keyName"] for key in keys] == ["key1", "key2"]
    arguments = {
        "canonicalizedResource": "/blob/models/data",
        "permissions": "rl",
        "protocols": "https",
        "resource": "c",
        "sharedAccessExpiryTime": "2027-01-01T00:00:00Z",
        "sharedAccessStartTime": "2026-11-01T00:00:00Z",
    }
    token = group.invoke(SERVICE_SAS, OF_ACCOUNT | arguments)["serviceSasToken"]
    assert "sp=rl&spr=https&sig=" in token
    assert "st=2026-11-01T00%3A00%3A00Z" in token


def test_an_account_is_looked_up_as_the_program_does_before_it_declares_anything(plugin: AzurePlugin) -> None:
    with pytest.raises(grpc.RpcError) as no_group:
        plugin.invoke(GET_ACCOUNT, dict(OF_ACCOUNT))
    plugin.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    with pytest.raises(grpc.RpcError) as no_account:
        plugin.invoke(GET_ACCOUNT, dict(OF_ACCOUNT))
    for refusal, code in ((no_group, "ResourceGroupNotFound"), (no_account, "ResourceNotFound")):
        assert f'Status=404 Code="{code}"' in failure(refusal)
    plugin.create(ACCOUNT, ACCOUNT_INPUTS | {"isHnsEnabled": True})
    found = plugin.invoke(GET_ACCOUNT, dict(OF_ACCOUNT))
    assert (found["name"], found["isHnsEnabled"]) == ("models", True)


def test_container_is_named_as_in_the_program(group: AzurePlugin) -> None:
    checked, _ = group.check(CONTAINER, dict(OF_ACCOUNT), name="data")
    assert checked["containerName"] == "data"


def test_turning_shared_keys_off(group: AzurePlugin) -> None:
    identity, _ = group.create(ACCOUNT, ACCOUNT_INPUTS)
    group.update(ACCOUNT, identity, ACCOUNT_INPUTS, ACCOUNT_INPUTS | {"allowSharedKeyAccess": False})
    with pytest.raises(grpc.RpcError) as raised:
        group.invoke(SERVICE_SAS, OF_ACCOUNT | {"canonicalizedResource": "/blob/models/data"})
    assert 'Code="KeyBasedAuthenticationNotPermitted"' in failure(raised)


def test_feature_that_infiniband_needs(plugin: AzurePlugin) -> None:
    arguments = {"providerNamespace": "Microsoft.ContainerService", "featureName": "AKSInfinibandSupport"}
    found = plugin.invoke("azure-native:features:getSubscriptionFeatureRegistration", arguments)
    assert found["properties"]["state"] == "Registered"
