"""Managed identities and their federated credentials, as Resource Manager and the plugin have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import GROUP, Arm
from tests.support.azure_plugin import GROUP as GROUP_TOKEN
from tests.support.azure_plugin import AzurePlugin
from tests.support.blob_account import CREDENTIAL, IDENTITY

TRUST = {"issuer": "https://issuer/", "subject": "system:serviceaccount:ai:blobs", "audiences": ["api://x"]}
OF_IDENTITY = {"resourceGroupName": "rg", "resourceName": "aks-ai"}
OF_CREDENTIAL = {**OF_IDENTITY, "federatedIdentityCredentialResourceName": "blobs"}


@pytest.fixture
def identity(arm: Arm) -> Arm:
    """A subscription with a group, an identity in it, and a credential of that."""
    assert arm.put(GROUP, {"location": "eastus"}).status_code == 201
    assert arm.put(IDENTITY, {"location": "eastus"}).status_code == 201
    assert arm.put(CREDENTIAL, {"properties": TRUST}).status_code == 201
    return arm


def test_an_identity_keeps_the_ids_that_it_was_born_with(identity: Arm) -> None:
    born = identity.get(IDENTITY)["properties"]
    assert len({born["clientId"], born["principalId"], born["tenantId"]}) == 3
    assert identity.put(IDENTITY, {"location": "eastus", "tags": {"a": "b"}}).status_code == 200
    assert identity.get(IDENTITY)["properties"] == born


def test_a_credential_goes_with_its_identity(identity: Arm) -> None:
    assert identity.get(CREDENTIAL)["properties"] == TRUST
    assert identity.put(CREDENTIAL, {"properties": TRUST | {"audiences": ["api://y"]}}).status_code == 200
    identity.call("DELETE", IDENTITY)
    assert identity.call("GET", CREDENTIAL).status_code == 404


def test_the_plugin_makes_both(plugin: AzurePlugin) -> None:
    plugin.create(GROUP_TOKEN, {"resourceGroupName": "rg", "location": "eastus"}, name="rg")
    made: dict[str, dict[str, Any]] = {
        "UserAssignedIdentity": OF_IDENTITY | {"location": "eastus"},
        "FederatedIdentityCredential": OF_CREDENTIAL | TRUST,
    }
    for kind, inputs in made.items():
        token = f"azure-native:managedidentity:{kind}"
        checked, problems = plugin.check(token, inputs)
        assert (checked["azureApiVersion"], problems) == ("2023-01-31", [])
        _, outputs = plugin.create(token, inputs)
        assert outputs["name"] == inputs.get("federatedIdentityCredentialResourceName", "aks-ai")
    assert outputs["subject"] == TRUST["subject"]
