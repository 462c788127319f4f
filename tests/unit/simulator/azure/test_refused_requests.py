"""Requests that Azure rejects, with the status, code, message and target: the tables in `refused/`.

A group creates the resources in `given` once, and sends each case's request. A case inherits its group's fields. Its
body is the resource's usual body, changed by `body` and `properties`; `pool` changes a cluster's first pool,
`connection` an endpoint's target. Afterwards, the resource is unchanged, and the same resources exist.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from config.data import data
from tests.support import networks as net
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm, FakeBackend, cluster_body, pool_body, pool_path, start
from tests.support.blob_account import ACCOUNT, CONTAINER, IDENTITY, account_body
from tests.support.case_files import title

Case = dict[str, Any]
FIELDS = {
    *("request", "name", "version", "body", "properties", "pool", "connection"),
    *("status", "code", "message", "target"),  # the response
    *("given", "cases", "usual"),
}
_ZONE = net.zone("privatelink.blob.core.windows.net")
USUAL: dict[str, tuple[str, Any]] = {
    "account": (ACCOUNT, account_body()),
    "address": (net.ADDRESS, net.address_body()),
    "akszone": (net.zone("privatelink.eastus.azmk8s.io"), {"location": "global"}),
    "bastion": (net.BASTION, net.bastion_body()),
    "bastionsubnet": (net.BASTION_SUBNET, net.subnet_body("10.16.17.0/26")),
    "cluster": (CLUSTER, cluster_body()),
    "data": (CONTAINER, {"properties": {}}),
    "endpoint": (net.endpoint("blob"), net.endpoint_body(ACCOUNT, "blob")),
    "endpoints": (net.ENDPOINTS, net.subnet_body("10.16.16.0/24")),
    "gateway": (net.GATEWAY, net.gateway_body(net.ADDRESS)),
    "group": (GROUP, {"location": "eastus"}),
    "identity": (IDENTITY, {"location": "eastus"}),
    "interface": (net.INTERFACE, net.interface_body()),
    "machine": (net.MACHINE, net.machine_body()),
    "network": (net.NETWORK, net.network_body()),
    "nodes": (net.NODES, net.subnet_body("10.16.0.0/20", natGateway={"id": net.GATEWAY})),
    "other": (GROUP.replace("/rg", "/other"), {"location": "eastus"}),
    "otherzone": (_ZONE.replace("/rg/", "/other/"), {"location": "global"}),
    "pool": (pool_path(), pool_body()),
    "registry": (net.REGISTRY, net.REGISTRY_BODY),
    "routes": (net.ROUTES, net.routes_body()),
    "subscription": (f"/subscriptions/{SUBSCRIPTION.subscription_id}", None),
    "tenant": (f"/{SUBSCRIPTION.tenant_id}", None),
    "zone": (_ZONE, {"location": "global"}),
    "zones": (_ZONE.rpartition("/")[0], None),
}
"""The path and usual body for each word in angle brackets."""


def _with_paths(value: Any) -> Any:
    """Replaces words by paths. A request gets its first word's usual body, unless more follows."""
    if isinstance(value, dict):
        replaced = {_with_paths(key): _with_paths(each) for key, each in value.items()}
        if "request" in value:
            usual = re.match(r"\w+ <(\w+)>[^/]*$", value["request"])
            replaced["usual"] = usual and usual[1]
        return replaced
    if isinstance(value, list):
        return [_with_paths(each) for each in value]
    if isinstance(value, str):
        return re.sub(r"<(\w+)>", lambda word: USUAL[word[1]][0] if word[1] in USUAL else word[0], value)
    return value


GROUPS: dict[str, Case] = {
    f"{file.stem}: {name}": _with_paths(group)
    for file in sorted(Path(__file__).with_name("refused").glob("*.yaml"))
    for name, group in data.parsed(file.read_text("utf-8")).items()
}


def _flat(given: Any) -> Iterator[Any]:
    for each in given:
        yield from _flat(each) if isinstance(each, list) else (each,)


def _path(case: Case) -> str:
    path = str(case["request"]).split()[1]
    return f"{path.rpartition('/')[0]}/{case['name']}" if "name" in case else path


def _send(arm: Arm, case: Case) -> httpx.Response:
    assert case.keys() <= FIELDS, f"unknown: {case.keys() - FIELDS}"
    case, method = copy.deepcopy(case), case["request"].split()[0]
    body = copy.deepcopy(USUAL[case["usual"]][1]) if case["usual"] and method == "PUT" else {}
    body |= case.get("body", {})
    if "properties" in case:
        body["properties"] = body.get("properties", {}) | case["properties"]
    if "pool" in case:
        body["properties"]["agentPoolProfiles"][0] |= case["pool"]
    if "connection" in case:
        body["properties"]["privateLinkServiceConnections"][0]["properties"] |= case["connection"]
    query = {"api-version": case["version"]} if "version" in case else {}
    return arm.call(method, _path(case), None if method in ("DELETE", "GET") else body, **query)


@pytest.fixture(scope="module")
def arm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    arm = start(tmp_path_factory.mktemp("refused") / "azure", FakeBackend())
    try:
        for each in _flat(GROUPS[request.param]["given"]):
            made = arm.put(*USUAL[each]) if isinstance(each, str) else _send(arm, each)
            assert made.is_success, made.text
            arm.done()
        yield arm
    finally:
        arm.stop()


def _stored(arm: Arm) -> list[str]:
    return [record.id.text for record in arm.server.world.store.all()]


CASES = [(name, group | case) for name, group in GROUPS.items() for case in group["cases"]]
IDS = [f"{name}: {title(case['message'])}" for name, case in CASES]


@pytest.mark.parametrize(("arm", "case"), CASES, indirect=["arm"], ids=IDS)
def test_rejects_a_request(arm: Arm, case: Case) -> None:
    stored, before = _stored(arm), arm.call("GET", _path(case))
    refused = _send(arm, case)
    status, code, message = arm.refusal(refused)
    assert (status, code) == (case.get("status", 400), case["code"]), message
    assert case["message"] in message
    assert "target" not in case or refused.json()["error"]["target"] == case["target"]
    assert _stored(arm) == stored
    after = arm.call("GET", _path(case))
    assert after.status_code == before.status_code
    assert not before.is_success or after.json() == before.json()
