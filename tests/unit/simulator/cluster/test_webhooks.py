"""After a start, webhooks are waited for by what endpoints and the kubelet say of their pods."""

from __future__ import annotations

from typing import Any, cast

import pytest

from simulator.cluster import webhooks
from simulator.kube.client import KubeClient

CALLED = {"clientConfig": {"service": {"namespace": "volcano-system", "name": "admission"}}}
BY_URL = {"clientConfig": {"url": "https://elsewhere"}}


class Kube:
    """An API server with one webhook's endpoints, which change from look to look."""

    def __init__(self, *looks: list[bool]) -> None:
        self.looks, self.looked = looks, 0

    def list(self, _version: str, kind: str, _namespace: str | None = None, *, labels: str = "") -> list[Any]:
        if kind != "EndpointSlice":
            return [{"webhooks": [CALLED, BY_URL]}] if kind.startswith("Validating") else [{}]
        assert labels == "kubernetes.io/service-name=admission"
        ready = self.looks[min(self.looked, len(self.looks) - 1)]
        self.looked += 1
        uids = enumerate(ready)
        return [{"endpoints": [{"conditions": {"ready": each}, "targetRef": {"uid": str(uid)}} for uid, each in uids]}]


def looks(kube: Kube, *ready: str, timeout_s: float = 10) -> int:
    """How often it has to look, where these pods are ready by the kubelet."""
    webhooks.await_webhooks(cast(KubeClient, kube), lambda uid: uid in ready, timeout_s)
    return kube.looked


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_EVERY_S", 0.001)


def test_until_one_answers() -> None:
    assert looks(Kube([False, False], [False, False], [False, True]), "0", "1") == 3


def test_what_endpoints_say_of_before_the_start_does_not_count() -> None:
    assert looks(Kube([True], [True], [True]), timeout_s=0.5) > 3


def test_a_webhook_without_pods_is_not_waited_for() -> None:
    assert looks(Kube([])) == 1
