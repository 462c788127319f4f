"""Waits for webhooks after a start, because the control plane starts before the webhooks' pods.

Until the pods run, the API server rejects objects (`no endpoints available for service`), as on AKS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from k8s.objects import Object
from simulator.kube.client import KubeClient

_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_EVERY_S = 0.2


def await_webhooks(kube: KubeClient, is_ready: Callable[[str], bool], timeout_s: float) -> None:
    """Waits until each webhook that has pods has a pod that answers. `is_ready` takes a pod's uid.

    At the timeout, returns without an error: the API server then reports the missing webhook.
    """
    deadline = time.monotonic() + timeout_s
    while any(_waits(endpoints, is_ready) for endpoints in _behind_webhooks(kube)) and time.monotonic() < deadline:
        time.sleep(_EVERY_S)


def _behind_webhooks(kube: KubeClient) -> Iterator[list[Object]]:
    configurations = [each for kind in _KINDS for each in kube.list("admissionregistration.k8s.io/v1", kind)]
    clients = [webhook["clientConfig"] for each in configurations for webhook in each.get("webhooks", ())]
    called = {(client["service"]["namespace"], client["service"]["name"]) for client in clients if "service" in client}
    for namespace, name in called:
        of_service = f"kubernetes.io/service-name={name}"
        slices = kube.list("discovery.k8s.io/v1", "EndpointSlice", namespace, labels=of_service)
        yield [endpoint for each in slices for endpoint in each.get("endpoints") or ()]


def _waits(endpoints: list[Object], is_ready: Callable[[str], bool]) -> bool:
    """Returns whether pods exist, but none answers. Endpoints may be old, so `is_ready` decides."""
    answering = (each["conditions"].get("ready") and is_ready(each["targetRef"]["uid"]) for each in endpoints)
    return bool(endpoints) and not any(answering)
