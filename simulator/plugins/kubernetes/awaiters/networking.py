"""Readiness of Services."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from k8s.objects import Object
from simulator.plugins.kubernetes.awaiters.base import Look, Progress

_NO_PODS = (
    "Service does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may not match "
    "labels on any Pods"
)
_NO_ADDRESS = "Service was not allocated an IP address; does your cloud provider support this?"
_SETTLED = timedelta(seconds=10)  # a Service older than this may have no endpoints


def service(look: Look) -> Progress:
    """Ready if no endpoint is unready, and a load balancer has its address.

    A headless Service, or a Service without a selector, needs no endpoints. If the selector matches no pod, the Service
    is ready after ten seconds or at the timeout (pulumi-kubernetes, provider/pkg/await/service.go, endpointsPending).
    """
    spec = look.live["spec"]
    balancer = spec.get("type") == "LoadBalancer"
    addressed = not balancer or bool(look.live.get("status", {}).get("loadBalancer", {}).get("ingress"))
    targets = _waits_for_pods(spec)
    endpoints = _endpoints(look) if targets else []
    pending = not all(_ready(endpoint) for endpoint in endpoints)
    targeted = not pending and (bool(endpoints) or not targets or _settled(look))
    if addressed and targeted:
        return Progress(done=True)
    text = (
        "[2/3] Attempting to allocate IP address to Service" if targeted else "[1/3] Finding Pods to direct traffic to"
    )
    reasons = ([] if targeted else [_NO_PODS]) + ([] if addressed else [_NO_ADDRESS])
    return Progress(done=False, enough=addressed and not pending, status=text, reasons=reasons)


def _waits_for_pods(spec: Object) -> bool:
    headless = spec.get("clusterIP") == "None"
    return bool(spec.get("selector")) and not headless and spec.get("type") != "ExternalName"


def _settled(look: Look) -> bool:
    created = datetime.fromisoformat(look.live["metadata"]["creationTimestamp"])
    return datetime.now(UTC) - created > _SETTLED


def _ready(endpoint: Object) -> bool:
    return bool(endpoint.get("conditions", {}).get("ready", True))


def _endpoints(look: Look) -> list[Object]:
    slices = look.kube.list(
        "discovery.k8s.io/v1", "EndpointSlice", look.namespace, labels=f"kubernetes.io/service-name={look.name}"
    )
    return [endpoint for item in slices for endpoint in item.get("endpoints") or []]
