"""The SDK checks statuses, polls, and parses answers into its models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.identity import ClientSecretCredential, ManagedIdentityCredential
from azure.mgmt.resource import ResourceManagementClient, SubscriptionClient

from simulator.azure.schema import schemas
from tests.contract.azure_sdks.operations import Operations
from tests.support.arm import SUBSCRIPTION, Arm
from tests.support.azure_resources import EXAMPLES, shows

POOLS = "Microsoft.ContainerService/managedClusters/agentPools"


@pytest.fixture(scope="module")
def credential(arm: Arm) -> Iterator[ManagedIdentityCredential]:
    with ManagedIdentityCredential() as signed_in:
        yield signed_in


def test_every_simulated_type_has_an_example() -> None:
    assert {schema.type for schema in schemas().values()} == set(EXAMPLES)


@pytest.mark.parametrize("resource_type", sorted(EXAMPLES))
def test_create_read_update_delete(resource_type: str, arm: Arm, credential: ManagedIdentityCredential) -> None:
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


def test_a_failed_operation(arm: Arm, credential: ManagedIdentityCredential) -> None:
    pool = Operations(POOLS, arm.server.endpoint, credential)
    arm.backend.failure = "no machines"
    try:
        with pool.client, pytest.raises(HttpResponseError, match="no machines"):
            pool.put(EXAMPLES[POOLS].body)
    finally:
        arm.backend.failure = ""
        arm.call("DELETE", EXAMPLES[POOLS].id)
        arm.done()


def test_long_running_actions(arm: Arm, credential: ManagedIdentityCredential) -> None:
    pool = Operations(POOLS, arm.server.endpoint, credential)
    with pool.client as client:
        ran = client.managed_clusters.begin_run_command("rg", "aks", {"command": "kubectl get nodes"}).result()
        assert (ran.provisioning_state, ran.exit_code, ran.finished_at.tzinfo is None) == ("Succeeded", 0, False)
        upgraded = client.agent_pools.begin_upgrade_node_image_version("rg", "aks", "system").result()
        assert (upgraded.name, upgraded.provisioning_state) == ("system", "Succeeded")


def test_a_service_principal(arm: Arm) -> None:
    groups = "Microsoft.Resources/resourceGroups"
    who = SUBSCRIPTION.tenant_id, SUBSCRIPTION.client_id, arm.server.tokens.secret
    with ClientSecretCredential(*who, authority=arm.server.endpoint, disable_instance_discovery=True) as credential:
        resource = Operations(groups, arm.server.endpoint, credential)
        with resource.client:
            assert [found["name"] for found in resource.list()] == ["rg", "MC_rg_aks_eastus"]


def test_subscriptions_and_tenants(arm: Arm, credential: ManagedIdentityCredential) -> None:
    here, audience = arm.server.endpoint, [f"{arm.server.endpoint}/.default"]
    mine, tenant = SUBSCRIPTION.subscription_id, SUBSCRIPTION.tenant_id
    with SubscriptionClient(credential, base_url=here, credential_scopes=audience) as client:
        (found,) = client.subscriptions.list()
        assert (found.id, found.subscription_id, found.tenant_id) == (f"/subscriptions/{mine}", mine, tenant)
        assert client.subscriptions.get(mine).as_dict() == found.as_dict()
        assert found.additional_properties == {}
        (home,) = client.tenants.list()
        assert (home.id, home.tenant_id, home.additional_properties) == (f"/tenants/{tenant}", tenant, {})


def test_existence_of_groups(arm: Arm, credential: ManagedIdentityCredential) -> None:
    audience = [f"{arm.server.endpoint}/.default"]
    with ResourceManagementClient(
        credential, SUBSCRIPTION.subscription_id, base_url=arm.server.endpoint, credential_scopes=audience
    ) as client:
        groups, version = client.resource_groups, {"api_version": "2024-03-01"}
        assert [groups.check_existence(name, **version) for name in ("rg", "other")] == [True, False]
