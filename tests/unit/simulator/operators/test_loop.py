from __future__ import annotations

import threading

import pytest

from simulator.kube.client import ApiError
from simulator.operators import _loop, crds
from tests.support.fake_kube import Context, FakeKube

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, "data": {"a": "1"}}
CRD = "nicclusterpolicies.mellanox.com"


def test_the_loop_continues_after_an_error_and_logs_it_once() -> None:
    ctx, stop, rounds = Context(FakeKube()), threading.Event(), []

    def step() -> None:
        rounds.append(1)
        if len(rounds) == 3:
            stop.set()
        raise ApiError(403, "Forbidden", "nodes is forbidden")

    _loop.reconcile(ctx.as_pod_context(), stop, step, seconds=0.001)
    assert len(rounds) == 3
    assert ctx.lines == ["error: nodes is forbidden"]


def test_sends_an_object_that_changed_was_lost_or_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    applier = _loop.Applier(kube.as_client(), "me")
    assert applier.apply(CONFIG_MAP)
    assert not applier.apply(CONFIG_MAP)
    assert applier.apply({**CONFIG_MAP, "data": {"a": "2"}})
    assert not applier.apply({**CONFIG_MAP, "data": {"a": "2"}}, lost=True)
    monkeypatch.setattr(_loop, "RESYNC_S", 0)
    applier.apply({**CONFIG_MAP, "data": {"a": "2"}})
    assert len(kube.writes) == 4


def test_the_hook_creates_and_updates_the_simulators_crds() -> None:
    kube = FakeKube()
    hook = crds.apply_crds("network-operator")
    hook(Context(kube).as_pod_context())
    made = kube.objects[("CustomResourceDefinition", "", CRD)]
    kube.patch("", "CustomResourceDefinition", CRD, None, {"spec": {"scope": "Namespaced"}})
    hook(Context(kube).as_pod_context())
    assert made["spec"]["scope"] == "Cluster"


def test_the_hook_keeps_the_crds_of_an_upstream_chart() -> None:
    kube = FakeKube({"kind": "CustomResourceDefinition", "metadata": {"name": CRD}, "spec": {"scope": "theirs"}})
    crds.apply_crds("network-operator")(Context(kube).as_pod_context())
    assert kube.objects[("CustomResourceDefinition", "", CRD)]["spec"] == {"scope": "theirs"}
