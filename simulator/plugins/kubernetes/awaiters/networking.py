"""When a Service has endpoints, and an Ingress an address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from k8s.objects import Object
from simulator.plugins.kubernetes.awaiters.base import Look, Progress

_NO_PODS = (
    "Service does not target any Pods. Selected Pods may not be ready, or field '.spec.selector' may not match "
    "labels on any Pods"
)
_NO_ADDRESS = "Service was not allocated an IP address; does your cloud provider support this?"
_SETTLED = timedelta(seconds=10)  # a service that has selected nothing for so long is meant so
_INGRESS_NO_ADDRESS = "Ingress .status.loadBalancer field was not updated with a hostname/IP address."


def service(look: Look) -> Progress:
    """None of its endpoints is unready and, as a load balancer, it has an address.

    Headless and selector-less services need no endpoints. One whose selector matches no pod is waited for, ten seconds
    or until the time is up, and then good enough (pulumi-kubernetes, provider/pkg/await/service.go, endpointsPending).
    """
    spec = look.live["spec"]
    balancer = spec.get("type") == "LoadBalancer"
    addressed = not balancer or bool(look.live.get("status", {}).get("loadBalancer", {}).get("ingress"))
    targets = _waits_for_pods(spec)
    endpoints = _endpoints(look, look.name) if targets else []
    pending = not all(_ready(endpoint) for endpoint in endpoints)
    targeted = not pending and (bool(endpoints) or not targets or _settled(look))
    if addressed and targeted:
        return Progress(done=True)
    text = (
        "[2/3] Attempting to allocate IP address to Service" if targeted else "[1/3] Finding Pods to direct traffic to"
    )
    reasons = ([] if targeted else [_NO_PODS]) + ([] if addressed else [_NO_ADDRESS])
    return Progress(done=False, enough=addressed and not pending, status=text, reasons=reasons)


def ingress(look: Look) -> Progress:
    """Has an address, and every service that its rules name has endpoints."""
    spec = look.live["spec"]
    backends = [
        path.get("backend", {})
        for rule in spec.get("rules") or []
        for path in (rule.get("http") or {}).get("paths", [])
    ]
    names = {backend["service"]["name"] for backend in backends if backend.get("service")}
    served = all(_service_ready(look, name) for name in names)
    addressed = bool(look.live.get("status", {}).get("loadBalancer", {}).get("ingress"))
    reasons = [] if served else ["Ingress has at least one rule with an unavailable target endpoint."]
    text = (
        "[2/3] Waiting for update of .status.loadBalancer with hostname/IP"
        if served
        else "[1/3] Finding a matching service"
    )
    return Progress(
        done=served and addressed, status=text, reasons=reasons + ([] if addressed else [_INGRESS_NO_ADDRESS])
    )


def _waits_for_pods(spec: Object) -> bool:
    headless = spec.get("clusterIP") == "None"
    return bool(spec.get("selector")) and not headless and spec.get("type") != "ExternalName"


def _service_ready(look: Look, name: str) -> bool:
    found = look.kube.find("v1", "Service", name, look.namespace)
    if found is not None and found["spec"].get("type") == "ExternalName":
        return True
    return _has_endpoints(look, name)


def _settled(look: Look) -> bool:
    created = datetime.fromisoformat(look.live["metadata"]["creationTimestamp"])
    return datetime.now(UTC) - created > _SETTLED


def _has_endpoints(look: Look, name: str) -> bool:
    endpoints = _endpoints(look, name)
    return bool(endpoints) and all(_ready(endpoint) for endpoint in endpoints)


def _ready(endpoint: Object) -> bool:
    return bool(endpoint.get("conditions", {}).get("ready", True))


def _endpoints(look: Look, name: str) -> list[Object]:
    slices = look.kube.list(
        "discovery.k8s.io/v1", "EndpointSlice", look.namespace, labels=f"kubernetes.io/service-name={name}"
    )
    return [endpoint for item in slices for endpoint in item.get("endpoints") or []]
