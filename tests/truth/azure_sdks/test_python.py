"""Azure's SDK for Python on simulated Azure: it checks statuses, polls, and parses every answer into its models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.identity import ClientSecretCredential, ManagedIdentityCredential

from simulator.azure.schema import schemas
from tests.support.arm import SUBSCRIPTION, Arm
from tests.truth.azure_sdks.examples import EXAMPLES, shows
from tests.truth.azure_sdks.operations import Operations

POOLS = "Microsoft.ContainerService/managedClusters/agentPools"


@pytest.fixture(scope="module")
def credential(arm: Arm) -> Iterator[ManagedIdentityCredential]:
    with ManagedIdentityCredential() as signed_in:
        yield signed_in


def test_every_simulated_type_has_its_example() -> None:
    assert {schema.type for schema in schemas().values()} == set(EXAMPLES)


@pytest.mark.parametrize("resource_type", sorted(EXAMPLES))
def test_its_whole_life(resource_type: str, arm: Arm, credential: ManagedIdentityCredential) -> None:
    example = EXAMPLES[resource_type]
    resource = Operations(resource_type, arm.server.endpoint, credential)
    with resource.client:
        with pytest.raises(ResourceNotFoundError):
            resource.get()
        made = resource.put(example.body)
        assert made["id"].lower() == example.id.lower()
        assert shows(resource.get(), example.body)
        assert made["id"] in [found["id"] for found in resource.list()]
        if example.changed:
            resource.put(example.changed)
            assert shows(resource.get(), example.changed)
        resource.delete()
        with pytest.raises(ResourceNotFoundError):
            resource.get()


def test_an_operation_that_fails(arm: Arm, credential: ManagedIdentityCredential) -> None:
    pool = Operations(POOLS, arm.server.endpoint, credential)
    arm.backend.failure = "no machines"
    try:
        with pool.client, pytest.raises(HttpResponseError, match="no machines"):
            pool.put(EXAMPLES[POOLS].body)
    finally:
        arm.backend.failure = ""
        arm.call("DELETE", EXAMPLES[POOLS].id)
        arm.done()


def test_a_service_principal(arm: Arm) -> None:
    """As a stack with `clientId` and `clientSecret` signs in."""
    groups = "Microsoft.Resources/resourceGroups"
    who = SUBSCRIPTION.tenant_id, SUBSCRIPTION.client_id, arm.server.tokens.secret
    with ClientSecretCredential(*who, authority=arm.server.endpoint, disable_instance_discovery=True) as credential:
        resource = Operations(groups, arm.server.endpoint, credential)
        with resource.client:
            assert [found["name"] for found in resource.list()] == ["rg"]
