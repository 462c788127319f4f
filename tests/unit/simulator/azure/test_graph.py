from __future__ import annotations

from typing import Any

import httpx
import pytest

from simulator.azure import domains
from simulator.azure.tokens import GRAPH
from tests.support import networks as net
from tests.support.arm import CLUSTER, SUBSCRIPTION, Arm
from tests.support.blob_account import IDENTITY

GRACE = SUBSCRIPTION.directory["grace"]
AUTOMATION = SUBSCRIPTION.directory["automation"]


def ask(
    arm: Arm, path: str, method: str = "GET", body: Any = None, audience: str = GRAPH, **query: str
) -> httpx.Response:
    headers = {"Host": domains.GRAPH, "Authorization": f"Bearer {arm.server.tokens.issue(audience)[0]}"}
    return arm.client.request(method, f"/v1.0/{path}", json=body, params=query, headers=headers)


def found(answer: httpx.Response) -> list[str]:
    return [each["id"] for each in answer.json()["value"]]


def test_finds_principals_by_name_client_id_and_object_id(cluster: Arm) -> None:
    cluster.put(IDENTITY, {"location": "eastus"})
    identity = cluster.get(IDENTITY)["properties"]
    by_name = {"$filter": f"userPrincipalName eq '{GRACE.upn}'"}
    by_client = {"$filter": f"servicePrincipalNames/any(c:c eq '{identity['clientId']}')"}
    assert found(ask(cluster, "users", **by_name)) == [GRACE.object_id]
    assert found(ask(cluster, "servicePrincipals", **by_client)) == [identity["principalId"]]
    kubelet = cluster.get(CLUSTER)["properties"]["identityProfile"]["kubeletidentity"]["objectId"]
    asked = {"ids": [GRACE.groups[0], kubelet, "00000000-0000-4000-8000-00000000ffff"], "types": ["user"]}
    answer = ask(cluster, "directoryObjects/getByIds", "POST", asked)
    assert found(answer) == [GRACE.groups[0], kubelet]
    assert answer.json()["value"][0]["@odata.type"] == "#microsoft.graph.group"


def test_finds_the_identity_of_a_machine(arm: Arm) -> None:
    net.make_network(arm)
    net.make(arm, net.INTERFACE, net.interface_body())
    own = net.make(arm, net.MACHINE, net.machine_body())["identity"]["principalId"]
    (machine,) = ask(arm, "servicePrincipals", **{"$filter": "displayName eq 'jump'"}).json()["value"]
    assert (machine["id"], machine["servicePrincipalType"]) == (own, "ManagedIdentity")


def test_returns_lists_and_single_principals(arm: Arm) -> None:
    assert found(ask(arm, "groups")) == list(GRACE.groups)
    assert AUTOMATION.object_id in found(ask(arm, "servicePrincipals", **{"$filter": "startswith(displayName,'auto')"}))
    assert ask(arm, f"users/{GRACE.upn}").json()["id"] == GRACE.object_id


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("me", {}, 400),
        ("applications", {}, 400),
        ("users/missing@contoso.example", {}, 404),
        ("users", {"$filter": "accountEnabled ne true"}, 400),
    ],
)
def test_rejects_unsupported_requests(path: str, query: dict[str, str], status: int, arm: Arm) -> None:
    answer = ask(arm, path, **query)
    assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True)


def test_accepts_only_tokens_for_graph(arm: Arm) -> None:
    assert ask(arm, "users", audience=arm.server.endpoint).status_code == 401
