"""The REST API's frame: authentication, versions, paths, resource groups, features, and what is not simulated."""

from __future__ import annotations

import ssl

import httpx
import pytest

from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, cluster_body, pool_body, pool_path

FEATURE = (
    f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Features/featureProviders"
    "/Microsoft.ContainerService/subscriptionFeatureRegistrations/AKSInfinibandSupport"
)


@pytest.mark.parametrize(
    ("path", "version", "status", "code"),
    [
        (CLUSTER, "2020-01-01", 400, "NoRegisteredProviderFound"),
        (GROUP, "2020-01-01", 400, "InvalidApiVersionParameter"),
        (CLUSTER, "", 400, "MissingApiVersionParameter"),
        (CLUSTER.replace("rg/", "other/"), "2025-09-01", 404, "ResourceGroupNotFound"),
        (CLUSTER, "2025-09-01", 404, "ResourceNotFound"),
        (pool_path(), "2025-09-01", 404, "ParentResourceNotFound"),
        (f"{GROUP}/providers/Microsoft.KeyVault/vaults/a", "2024-01-01", 404, "InvalidResourceType"),
        ("/subscriptions/other/resourceGroups/rg", "2024-03-01", 404, "SubscriptionNotFound"),
        ("/providers/Microsoft.ContainerService/managedClusters/a", "2025-09-01", 404, "MissingSubscription"),
        ("/nothing", "2025-09-01", 404, "NotFound"),
    ],
)
def test_refused_paths(arm: Arm, path: str, version: str, status: int, code: str) -> None:
    arm.put(GROUP, {"location": "eastus"})
    assert arm.refusal(arm.call("GET", path, **{"api-version": version}))[:2] == (status, code)


def test_every_request_needs_the_token(arm: Arm) -> None:
    storage, _ = arm.server.tokens.issue("https://storage.azure.com")
    for given, code in [
        ("", "AuthenticationFailed"),
        ("Bearer x", "InvalidAuthenticationToken"),
        (f"Bearer {storage}", "InvalidAuthenticationTokenAudience"),
    ]:
        answer = arm.client.get(GROUP, headers={"Authorization": given})
        assert arm.refusal(answer)[:2] == (401, code)


def test_who_does_not_trust_its_authority_says_nothing(arm: Arm) -> None:
    with pytest.raises(httpx.ConnectError, match="self-signed certificate in certificate chain|unable to get local"):
        httpx.get(arm.server.endpoint, trust_env=False)


def test_strict_clients_trust_its_certificate(arm: Arm) -> None:
    """Python 3.13 and newer are so by default."""
    strict = ssl.create_default_context(cafile=arm.ca_file)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    assert httpx.get(arm.server.endpoint, trust_env=False, verify=strict).status_code == 401


def test_body_that_is_no_json(arm: Arm) -> None:
    answer = arm.client.put(GROUP, params={"api-version": "2024-03-01"}, content=b"{")
    assert arm.refusal(answer)[:2] == (400, "InvalidRequestContent")


def test_ids_ignore_case(cluster: Arm) -> None:
    assert (
        cluster.get(CLUSTER.lower().replace("microsoft.containerservice", "Microsoft.ContainerService"))["name"]
        == "aks"
    )


def test_lists(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    names = [pool["name"] for pool in cluster.get(f"{CLUSTER}/agentPools")["value"]]
    assert names == ["gpu", "system"]
    clusters = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters"
    assert [found["name"] for found in cluster.get(clusters)["value"]] == ["aks"]
    groups = GROUP.rpartition("/")[0]
    assert [found["name"] for found in cluster.get(groups)["value"]] == ["rg"]


def test_group_is_in_one_region_that_exists(arm: Arm) -> None:
    _, code, message = arm.refusal(arm.put(GROUP, {"location": "moon"}))
    assert code == "LocationNotAvailableForResourceGroup"
    assert "eastus" in message
    assert arm.put(GROUP, {"location": "East US"}).json()["location"] == "eastus"
    assert arm.refusal(arm.put(GROUP, {"location": "westus3"}))[:2] == (409, "InvalidResourceGroupLocation")


def test_deleting_a_group_deletes_what_is_in_it(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    cluster.done()
    assert cluster.call("DELETE", GROUP).status_code == 202
    cluster.done()
    assert cluster.backend.deleted == [CLUSTER]
    assert cluster.server.world.store.all() == []
    assert cluster.refusal(cluster.call("DELETE", GROUP))[:2] == (404, "ResourceGroupNotFound")


def test_group_that_goes_takes_nothing_in(cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.call("DELETE", GROUP)
    other = CLUSTER.replace("/aks", "/other")
    assert cluster.refusal(cluster.put(other, cluster_body()))[:2] == (409, "ResourceGroupBeingDeleted")


def test_tags_can_be_patched(cluster: Arm) -> None:
    answer = cluster.call("PATCH", CLUSTER, {"tags": {"team": "a"}})
    assert answer.json()["tags"] == {"team": "a"}
    assert cluster.call("PATCH", CLUSTER, {"location": "x"}).status_code == 400


def test_feature_decides_the_fabric_of_pools_made_later(cluster: Arm) -> None:
    version = {"api-version": "2021-07-01"}
    assert cluster.call("GET", FEATURE, **version).json()["properties"]["state"] == "Registered"
    cluster.put(pool_path("one"), pool_body(count=1))
    cluster.done()
    assert cluster.call("DELETE", FEATURE, **version).json()["properties"]["state"] == "NotRegistered"
    cluster.put(pool_path("two"), pool_body(count=1))
    cluster.done()
    cluster.call("PUT", FEATURE, {}, **version)
    partitions = {
        node["metadata"]["labels"]["agentpool"]: node["metadata"]["annotations"].get("simulator/infiniband-partition")
        for node in cluster.backend.nodes[CLUSTER]
    }
    assert partitions == {"system": None, "one": None, "two": "alone"}
    unknown = cluster.call("GET", FEATURE.replace("Infiniband", "X"), **version)
    assert cluster.refusal(unknown)[:2] == (404, "FeatureNotFound")
