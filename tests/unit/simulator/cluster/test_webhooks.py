from __future__ import annotations

from typing import Any, cast

import pytest

from simulator.cluster import webhooks
from simulator.kube.client import KubeClient

CALLED = {"clientConfig": {"service": {"namespace": "volcano-system", "name": "admission"}}}
BY_URL = {"clientConfig": {"url": "https://elsewhere"}}


class Kube:
    """The webhook's endpoints change with each list."""

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
    """Returns the number of lists until the wait ends, with these pods ready."""
    webhooks.await_webhooks(cast(KubeClient, kube), lambda uid: uid in ready, timeout_s)
    return kube.looked


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "_EVERY_S", 0.001)


def test_waits_until_a_pod_is_ready() -> None:
    assert looks(Kube([False, False], [False, False], [False, True]), "0", "1") == 3


def test_ignores_endpoints_from_before_the_start() -> None:
    assert looks(Kube([True], [True], [True]), timeout_s=0.5) > 3


def test_does_not_wait_for_a_webhook_without_pods() -> None:
    assert looks(Kube([])) == 1
