from __future__ import annotations

import threading
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Any

import httpx
import pytest

from k8s.objects import Object
from simulator.azure.types.agent_pool.nodes import ADDRESSES_PER_POOL
from simulator.cluster import load_balancers
from simulator.cluster.load_balancers import FINALIZER, INTERNAL, NODE_SUBNET, PUBLIC, LoadBalancers, free_address, step
from simulator.kube.client import ApiError
from tests.support.fake_kube import FakeKube
from tests.support.waiting import eventually


def service(name: str = "web", *, kind: str = "LoadBalancer", internal: bool = False, **spec: Any) -> Object:
    metadata: Object = {"name": name, "namespace": "ai", "annotations": {INTERNAL: "true"} if internal else {}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": kind, **spec}}


def change(kube: FakeKube, body: Object) -> None:
    kube.patch("v1", "Service", "web", "ai", body)
    step(kube.as_client())


def state(kube: FakeKube, name: str = "web") -> tuple[list[Object], list[str]]:
    found = kube.objects[("Service", "ai", name)]
    return (
        found.get("status", {}).get("loadBalancer", {}).get("ingress", []),
        found["metadata"].get("finalizers", []),
    )


def address(kube: FakeKube, name: str = "web") -> str:
    (entry,), _ = state(kube, name)
    return str(entry["ip"])


def events(kube: FakeKube) -> list[tuple[str, str]]:
    found = sorted(kube.list("v1", "Event"), key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [(event["reason"], event["message"]) for event in found]


ENSURED = [("EnsuringLoadBalancer", "Ensuring load balancer"), ("EnsuredLoadBalancer", "Ensured load balancer")]
DELETED = [("DeletingLoadBalancer", "Deleting load balancer"), ("DeletedLoadBalancer", "Deleted load balancer")]


def test_internal_addresses_are_above_those_of_nodes() -> None:
    last_node = NODE_SUBNET[63 * ADDRESSES_PER_POOL + 4 + 999]  # the thousandth of the 64th pool
    assert IPv4Address(free_address(NODE_SUBNET, set()) or "") > last_node


@pytest.mark.parametrize(("internal", "network"), [(False, PUBLIC), (True, NODE_SUBNET)])
def test_a_service_gets_an_address_once(network: IPv4Network, *, internal: bool) -> None:
    kube = FakeKube(service(internal=internal))
    step(kube.as_client())
    writes = list(kube.writes)
    step(kube.as_client())
    assert kube.writes == writes
    assert ip_address(address(kube)) in network
    assert state(kube) == ([{"ip": address(kube), "ipMode": "VIP"}], [FINALIZER])
    assert events(kube) == ENSURED


@pytest.mark.parametrize(
    "other", [service(kind="ClusterIP"), service(kind="NodePort"), service(loadBalancerClass="example.com/theirs")]
)
def test_ignores_other_services(other: Object) -> None:
    kube = FakeKube(other)
    step(kube.as_client())
    assert kube.writes == []


def test_each_service_has_its_own_address_and_a_freed_one_is_reused() -> None:
    kube = FakeKube(service("web"), service("other"))
    step(kube.as_client())
    freed = address(kube, "web")
    assert freed != address(kube, "other")
    kube.delete("v1", "Service", "web", "ai")
    kube.create(service("new"))
    step(kube.as_client())
    assert address(kube, "new") == freed


def test_keeps_other_finalizers() -> None:
    made = service()
    made["metadata"]["finalizers"] = ["example.com/theirs"]
    kube = FakeKube(made)
    step(kube.as_client())
    assert state(kube)[1] == ["example.com/theirs", FINALIZER]
    change(kube, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert state(kube) == ([], ["example.com/theirs"])


@pytest.mark.parametrize(
    "body", [{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"spec": {"type": "ClusterIP"}}]
)
def test_releases_the_address_of_a_service_that_no_longer_needs_it(body: Object) -> None:
    kube = FakeKube(service())
    step(kube.as_client())
    for _ in range(2):
        change(kube, body)
    assert state(kube) == ([], [])
    assert events(kube) == ENSURED + DELETED


def test_a_service_that_becomes_internal_gets_another_address() -> None:
    kube = FakeKube(service())
    step(kube.as_client())
    change(kube, {"metadata": {"annotations": {INTERNAL: "true"}}})
    assert ip_address(address(kube)) in NODE_SUBNET


def test_reports_a_missing_free_address_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_balancers, "PUBLIC", IPv4Network("203.0.113.0/30"))
    kube = FakeKube(*(service(name) for name in ("a", "b", "web")))
    for _ in range(2):
        step(kube.as_client())
    assert state(kube) == ([], [FINALIZER])
    why = "failed to ensure load balancer: no address of 203.0.113.0/30 is free"
    assert [event for event in events(kube) if event not in ENSURED] == [
        ("SyncLoadBalancerFailed", f"Error syncing load balancer: {why}")
    ]
    kube.delete("v1", "Service", "a", "ai")
    step(kube.as_client())
    assert address(kube)


# -- errors of the API server -----------------------------------------------------------------------------------------


class Refusing(FakeKube):
    def patch(self, _api: str, kind: str, name: str, namespace: str | None, body: Object, **options: Any) -> Object:
        if name == "web":
            raise ApiError(403, "Forbidden", "not this one")
        return super().patch(_api, kind, name, namespace, body, **options)


def test_a_rejected_service_does_not_block_others(caplog: pytest.LogCaptureFixture) -> None:
    kube = Refusing(service("web"), service("zzz"))
    step(kube.as_client())
    assert address(kube, "zzz")
    assert caplog.messages == ["load balancer of service web: not this one"]


class Away(FakeKube):
    tries = 0

    def list(self, *arguments: Any, **options: Any) -> list[Object]:
        self.tries += 1
        if self.tries == 1:
            raise httpx.ConnectError("Connection refused")
        if self.tries == 2:
            raise ApiError(500, "InternalError", "etcdserver: request timed out")
        return super().list(*arguments, **options)


def test_the_loop_continues_after_errors_and_ends_at_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_balancers, "_TICK_S", 0.001)
    kube = Away(service())
    running = LoadBalancers(kube.as_client())
    eventually(lambda: len(kube.writes) == 4, "two patches and two events are made", 10)
    running.stop()
    eventually(lambda: "load-balancers" not in {thread.name for thread in threading.enumerate()}, "it ends", 10)
    assert address(kube)
