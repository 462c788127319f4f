"""Managed identities and their federated credentials, as Resource Manager and the plugin have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import GROUP, Arm
from tests.support.azure_plugin import CLUSTER, AzurePlugin, cluster_inputs
from tests.support.azure_plugin import GROUP as GROUP_TOKEN
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
    identity.call("DELETE", IDENTITY)
    assert identity.call("GET", CREDENTIAL).status_code == 404


def test_the_same_token_counts_by_one_credential_only(identity: Arm) -> None:
    answer = identity.put(CREDENTIAL.replace("blobs", "again"), {"properties": TRUST})
    status, _, message = identity.refusal(answer)
    assert (status, message) == (400, "Issuer and subject combination already exists for this Managed Identity.")
    assert identity.put(CREDENTIAL, {"properties": TRUST | {"audiences": ["api://y"]}}).status_code == 200


@pytest.mark.parametrize("missing", sorted(TRUST))
def test_a_credential_says_all_three(identity: Arm, missing: str) -> None:
    properties = {key: value for key, value in TRUST.items() if key != missing}
    assert identity.put(CREDENTIAL, {"properties": properties}).status_code == 400


@pytest.mark.parametrize("name", ["ab", "-abc", "a.bc"])
def test_refused_names(identity: Arm, name: str) -> None:
    assert identity.put(IDENTITY.replace("aks-ai", name), {"location": "eastus"}).status_code == 400


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


def test_workload_identity_is_switched_on_in_place(plugin: AzurePlugin) -> None:
    off = cluster_inputs()
    on = {**off, "securityProfile": {"workloadIdentity": {"enabled": True}}}
    found = plugin.diff(CLUSTER, off, on)
    assert list(found.diffs) == ["securityProfile"]
    assert list(found.replaces) == []
