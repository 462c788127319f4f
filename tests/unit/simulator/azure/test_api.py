from __future__ import annotations

import json
import ssl
import uuid
from email.utils import parsedate_to_datetime
from http.client import HTTPSConnection

import httpx
import pytest

from simulator.azure.schema import merged
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, TOKEN, Arm, cluster_body, pool_body, pool_path
from tests.support.blob_account import ACCOUNT, account_body
from tests.support.networks import make

HERE = f"/subscriptions/{SUBSCRIPTION.subscription_id}"
AUTHORIZATION = f"{GROUP}/providers/Microsoft.Authorization"
FEATURE = (
    f"{HERE}/providers/Microsoft.Features/featureProviders"
    "/Microsoft.ContainerService/subscriptionFeatureRegistrations/AKSInfinibandSupport"
)


@pytest.mark.parametrize("version", ["2026-06-01", "2020-01-01", "2026-07-02-preview"])
def test_accepts_any_api_version_up_to_the_newest(version: str, cluster: Arm) -> None:
    assert cluster.call("GET", CLUSTER, **{"api-version": version}).status_code == 200


def test_types_have_different_versions(cluster: Arm) -> None:
    assert cluster.get(f"{AUTHORIZATION}/roleAssignments")["value"] == []
    roles = cluster.call("GET", f"{AUTHORIZATION}/roleDefinitions", **{"api-version": "2022-05-01-preview"})
    assert roles.status_code == 200


def test_rejects_requests_without_a_valid_token(arm: Arm) -> None:
    storage, _ = arm.server.tokens.issue("https://storage.azure.com")
    for given, code in [
        ("", "AuthenticationFailed"),
        ("Bearer x", "InvalidAuthenticationToken"),
        (f"Bearer {storage}", "InvalidAuthenticationTokenAudience"),
        (TOKEN, "AuthenticationFailedInvalidHeader"),
        (f"Basic {TOKEN}", "AuthenticationFailedInvalidHeader"),
    ]:
        answer = arm.client.get(GROUP, headers={"Authorization": given})
        assert arm.refusal(answer)[:2] == (401, code)


@pytest.mark.parametrize(("path", "status"), [(GROUP, 200), (CLUSTER, 404), ("/nothing", 404)])
def test_responses_have_request_ids_and_return_those_of_the_client(group: Arm, path: str, status: int) -> None:
    first, second = group.call("GET", path), group.call("GET", path)
    assert (first.status_code, "x-ms-client-request-id" in first.headers) == (status, False)
    for name in ("x-ms-request-id", "x-ms-correlation-request-id"):
        assert len({uuid.UUID(answer.headers[name]) for answer in (first, second)}) == 2
    assert parsedate_to_datetime(first.headers["date"]).tzinfo
    given = {
        "x-ms-correlation-request-id": "mine",
        "x-ms-client-request-id": "this",
        "x-ms-return-client-request-id": "true",
    }
    returned = group.client.get(path, headers=given).headers
    assert (returned["x-ms-correlation-request-id"], returned["x-ms-client-request-id"]) == ("mine", "this")


def test_head_reports_whether_a_resource_exists(cluster: Arm) -> None:
    asked = [GROUP, CLUSTER, f"{GROUP}-2", f"{CLUSTER}-2"]
    answers = [cluster.call("HEAD", path) for path in asked]
    assert [answer.status_code for answer in answers] == [204, 204, 404, 404]
    assert {answer.content for answer in answers} == {b""}


def test_ignores_the_case_of_the_authorization_scheme(arm: Arm) -> None:
    answer = arm.client.get(GROUP, headers={"Authorization": f"bearer {TOKEN}"}, params={"api-version": "2024-03-01"})
    assert answer.status_code == 404


def test_clients_reject_an_untrusted_certificate(arm: Arm) -> None:
    with pytest.raises(httpx.ConnectError, match="self-signed certificate in certificate chain|unable to get local"):
        httpx.get(arm.server.endpoint, trust_env=False)


def test_strict_clients_trust_its_certificate(arm: Arm) -> None:
    """Python 3.13 and newer verify strictly by default."""
    strict = ssl.create_default_context(cafile=arm.ca_file)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    assert httpx.get(arm.server.endpoint, trust_env=False, verify=strict).status_code == 401


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000 + b"]" * 100_000], ids=["broken", "too deep"])
def test_rejects_a_body_that_is_not_json(arm: Arm, content: bytes) -> None:
    answer = arm.client.put(GROUP, params={"api-version": "2024-03-01"}, content=content)
    assert arm.refusal(answer)[:2] == (400, "InvalidRequestContent")


@pytest.mark.parametrize("length", ["abc", "-5", "1_0"])
def test_rejects_an_invalid_content_length(arm: Arm, length: str) -> None:
    """httpx does not send such a header, http.client does."""
    trusting = ssl.create_default_context(cafile=arm.ca_file)
    raw = HTTPSConnection(arm.client.base_url.netloc.decode(), timeout=10, context=trusting)
    raw.putrequest("PUT", GROUP)
    raw.putheader("Content-Length", length)
    raw.endheaders()
    answer = raw.getresponse()
    assert (answer.status, json.load(answer)["error"]["code"]) == (400, "InvalidRequestContent")
    raw.close()


def test_accepts_a_chunked_body(arm: Arm) -> None:
    pieces = iter([b'{"location":', b'"eastus"', b"}"])
    answer = arm.client.put(GROUP, params={"api-version": "2024-03-01"}, content=pieces)
    assert "Content-Length" not in answer.request.headers
    assert (answer.status_code, answer.json()["location"]) == (201, "eastus")
    assert arm.get(GROUP)["name"] == "rg", "the connection stays open"


def test_ids_ignore_case(cluster: Arm) -> None:
    lower = CLUSTER.lower().replace("microsoft.containerservice", "Microsoft.ContainerService")
    assert cluster.get(lower)["name"] == "aks"


def test_lists_pools_and_clusters(cluster: Arm) -> None:
    cluster.put(pool_path(), pool_body())
    names = [pool["name"] for pool in cluster.get(f"{CLUSTER}/agentPools")["value"]]
    assert names == ["gpu", "system"]
    clusters = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters"
    assert [found["name"] for found in cluster.get(clusters)["value"]] == ["aks"]


def test_a_group_keeps_its_valid_region(arm: Arm) -> None:
    _, code, message = arm.refusal(arm.put(GROUP, {"location": "moon"}))
    assert code == "LocationNotAvailableForResourceGroup"
    assert "eastus" in message
    assert arm.put(GROUP, {"location": "East US"}).json()["location"] == "eastus"
    assert arm.refusal(arm.put(GROUP, {"location": "westus3"}))[:2] == (409, "InvalidResourceGroupLocation")


def test_deleting_a_group_deletes_its_resources(cluster: Arm) -> None:
    make(cluster, pool_path(), pool_body())
    assert cluster.call("DELETE", GROUP).status_code == 202
    cluster.done()
    assert cluster.backend.deleted == [CLUSTER]
    assert cluster.server.world.store.all() == []
    assert cluster.refusal(cluster.call("DELETE", GROUP))[:2] == (404, "ResourceGroupNotFound")


def test_a_group_being_deleted_rejects_changes(cluster: Arm) -> None:
    cluster.backend.gate.clear()
    cluster.call("DELETE", GROUP)
    other = CLUSTER.replace("/aks", "/other")
    for path, body in ((other, cluster_body()), (GROUP, {"location": "eastus"})):
        assert cluster.refusal(cluster.put(path, body))[:2] == (409, "ResourceGroupBeingDeleted")


def test_tags_can_be_patched(cluster: Arm) -> None:
    answer = cluster.call("PATCH", CLUSTER, {"tags": {"team": "a"}})
    assert answer.json()["tags"] == {"team": "a"}
    assert cluster.call("PATCH", CLUSTER, {}).json()["tags"] == {"team": "a"}, "omitted tags stay"
    unchanged = {"location": "eastus", "properties": {}, "tags": {"team": "b"}}
    assert cluster.call("PATCH", CLUSTER, unchanged).json()["tags"] == {"team": "b"}, "as some clients send it"


def test_patch_changes_any_property_of_an_account(group: Arm) -> None:
    make(group, ACCOUNT, account_body(allowBlobPublicAccess=False, minimumTlsVersion="TLS1_2"))
    changed = group.call(
        "PATCH", ACCOUNT, {"properties": {"allowSharedKeyAccess": False}, "tags": {"team": "a"}}
    ).json()
    shown = [changed["properties"][name] for name in ("allowSharedKeyAccess", "minimumTlsVersion")]
    assert (shown, changed["tags"], changed["sku"]["name"]) == ([False, "TLS1_2"], {"team": "a"}, "Standard_LRS")
    refused = group.call("PATCH", ACCOUNT, {"kind": "FileStorage"})
    assert group.refusal(refused)[0] in (400, 409)
    assert group.refusal(group.call("PATCH", ACCOUNT, {"properties": {"nothing": 1}}))[0] == 400
    assert group.refusal(group.call("PATCH", ACCOUNT, []))[:2] == (400, "InvalidRequestContent")
    assert group.refusal(group.call("PATCH", f"{ACCOUNT}x", {"tags": {}}))[:2] == (404, "ResourceNotFound")


def test_null_in_a_patch_removes_a_property() -> None:
    body = {"properties": {"kept": [1], "old": 2}, "tags": {"x": "1"}}
    changes = {"properties": {"old": None, "new": {"none": None}}, "tags": {"y": "2"}}
    assert merged(body, changes) == {"properties": {"kept": [1], "new": {}}, "tags": {"y": "2"}}


def test_empty_values_count_as_unset(group: Arm) -> None:
    pool = {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D4ads_v5"}
    empty = pool | {"orchestratorVersion": "", "upgradeSettings": {}}
    shown = make(group, CLUSTER, cluster_body(kubernetesVersion="", agentPoolProfiles=[empty]))["properties"]
    newest = next(iter(SUBSCRIPTION.kubernetes_patches))
    assert (shown["kubernetesVersion"], shown["agentPoolProfiles"][0]["orchestratorVersion"]) == (newest, newest)
    assert shown["agentPoolProfiles"][0]["upgradeSettings"] == {"maxSurge": "10%", "maxUnavailable": "0"}
    body = pool_body(upgradeSettings={"undrainableNodeBehavior": "Schedule"})  # as `az aks nodepool add` sends it
    added = group.put(pool_path(), body).json()["properties"]["upgradeSettings"]
    assert added == {"undrainableNodeBehavior": "Schedule", "maxSurge": "10%", "maxUnavailable": "0"}


def test_new_clusters_have_an_issuer_since_kubernetes_1_34(group: Arm) -> None:
    old = {"kubernetesVersion": "1.33", "supportPlan": "AKSLongTermSupport"}
    for asked in (old, {**old, "kubernetesVersion": "1.34"}):  # the second is an upgrade
        make(group, CLUSTER, cluster_body(**asked) | {"sku": {"name": "Base", "tier": "Premium"}})
        assert group.get(CLUSTER)["properties"]["oidcIssuerProfile"] == {"enabled": False}
    assert make(group, f"{CLUSTER}2", cluster_body())["properties"]["oidcIssuerProfile"]["issuerURL"]


def test_a_feature_sets_the_infiniband_fabric_of_later_pools(cluster: Arm) -> None:
    version = {"api-version": "2021-07-01"}
    make(cluster, pool_path("one"), pool_body(count=1))
    assert cluster.call("DELETE", FEATURE, **version).status_code == 200
    make(cluster, pool_path("two"), pool_body(count=1))
    cluster.call("PUT", FEATURE, {}, **version)
    partitions = {
        node["metadata"]["labels"]["agentpool"]: node["metadata"]["annotations"].get("simulator/infiniband-partition")
        for node in cluster.backend.nodes[CLUSTER]
    }
    assert partitions == {"system": None, "one": None, "two": "alone"}
