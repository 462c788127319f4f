from __future__ import annotations

import grpc
import pytest

from tests.support.azure_plugin import (
    ACCOUNT,
    ACCOUNT_INPUTS,
    CONTAINER,
    CONTAINER_INPUTS,
    GROUP,
    OF_ACCOUNT,
    AzurePlugin,
    failure,
)

GET_ACCOUNT = "azure-native:storage:getStorageAccount"
KEYS = "azure-native:storage:listStorageAccountKeys"
SERVICE_SAS = "azure-native:storage:listStorageAccountServiceSAS"


def test_creates_an_account_with_a_container_and_a_sas(plugin: AzurePlugin) -> None:
    plugin.create(GROUP, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    _, account = plugin.create(ACCOUNT, ACCOUNT_INPUTS)
    assert account["primaryEndpoints"]["blob"].endswith("/models/")
    assert account["enableHttpsTrafficOnly"] is True, "the name in the SDK"
    assert account["provisioningState"] == "Succeeded"
    identity, _ = plugin.create(CONTAINER, CONTAINER_INPUTS)
    assert identity.endswith("/storageAccounts/models/blobServices/default/containers/data")
    keys = plugin.invoke(KEYS, dict(OF_ACCOUNT))["keys"]
    assert [key["keyName"] for key in keys] == ["key1", "key2"]
    arguments = {
        "canonicalizedResource": "/blob/models/data",
        "permissions": "rl",
        "protocols": "https",
        "resource": "c",
        "sharedAccessExpiryTime": "2027-01-01T00:00:00Z",
        "sharedAccessStartTime": "2026-11-01T00:00:00Z",
    }
    token = plugin.invoke(SERVICE_SAS, OF_ACCOUNT | arguments)["serviceSasToken"]
    assert "sp=rl&spr=https&sig=" in token
    assert "st=2026-11-01T00%3A00%3A00Z" in token


def test_looks_up_an_account_that_may_be_missing(plugin: AzurePlugin) -> None:
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
