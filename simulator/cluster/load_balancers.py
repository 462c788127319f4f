"""Assigns addresses to LoadBalancer Services, as Azure's cloud controller manager does.

Only the status of the Service stores the address, so the address survives restarts.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Container
from ipaddress import IPv4Network, ip_address
from typing import Literal

import httpx

from k8s.objects import Object
from simulator.kube import events
from simulator.kube.client import ApiError, KubeClient
from simulator.kube.informer import Changes

PUBLIC = IPv4Network("203.0.113.0/24")  # reserved for documentation (RFC 5737)
NODE_SUBNET = IPv4Network("10.224.0.0/16")  # AKS's default
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
_TICK_S = 1.0
_log = logging.getLogger(__name__)


class LoadBalancers:
    """The load balancers of one cluster. The thread runs until `stop`."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="load-balancers", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        with contextlib.closing(Changes(self._kube, [("v1", "Service")])) as changes:
            done = True
            while not self._stopped.wait(_TICK_S):
                if changes.seen() or not done:
                    done = self._round()

    def _round(self) -> bool:
        """Returns False if the next tick must try again."""
        try:
            return step(self._kube)
        except (ApiError, httpx.HTTPError):  # the API server restarts
            return False
        except Exception:  # noqa: BLE001 - one Service's fault must not stop others; it is logged
            _log.exception("load balancers")
            return False


def step(kube: KubeClient) -> bool:
    """Assigns and releases addresses. Returns whether this succeeded for all Services."""
    granted = True
    services = kube.list("v1", "Service")
    taken = {address for service in services for address in _addresses(service)}
    for service in services:
        try:
            _sync(kube, service, taken)
        except ApiError as error:  # one Service's error must not affect others
            _log.warning("load balancer of service %s: %s", service["metadata"]["name"], error)
            granted = False
    return granted


def free_address(network: IPv4Network, taken: Container[str]) -> str | None:
    """Returns the last free address, or None. Nodes use the first addresses (`types/agent_pool/nodes.py`)."""
    candidates = (str(network[-place]) for place in range(2, network.num_addresses))
    return next((address for address in candidates if address not in taken), None)


def _sync(kube: KubeClient, service: Object, taken: set[str]) -> None:
    metadata, spec = service["metadata"], service["spec"]
    if "loadBalancerClass" in spec:  # another controller is responsible
        return
    if spec["type"] == "LoadBalancer" and not metadata.get("deletionTimestamp"):
        _ensure(kube, service, taken)
    elif FINALIZER in _finalizers(service):
        _release(kube, service)


def _ensure(kube: KubeClient, service: Object, taken: set[str]) -> None:
    internal = service["metadata"].get("annotations", {}).get(INTERNAL) == "true"
    network = NODE_SUBNET if internal else PUBLIC
    kept = next((address for address in _addresses(service) if ip_address(address) in network), None)
    begun = FINALIZER in _finalizers(service)
    address = kept or free_address(network, taken)
    if begun and (kept or address is None):  # the Service has an address, or already a warning that none is free
        return
    if not begun:
        _set_finalizers(kube, service, [*_finalizers(service), FINALIZER])
    _emit(kube, service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer")
    if address is None:
        why = f"failed to ensure load balancer: no address of {network} is free"
        _emit(kube, service, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {why}")
        return
    taken.add(address)
    _set_ingress(kube, service, [{"ip": address, "ipMode": "VIP"}])
    _emit(kube, service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer")


def _release(kube: KubeClient, service: Object) -> None:
    """Removes the finalizer last, so that an interrupted release is repeated."""
    _emit(kube, service, "Normal", "DeletingLoadBalancer", "Deleting load balancer")
    emptied = _set_ingress(kube, service, None)
    _set_finalizers(kube, emptied, [name for name in _finalizers(service) if name != FINALIZER])
    _emit(kube, service, "Normal", "DeletedLoadBalancer", "Deleted load balancer")


def _addresses(service: Object) -> list[str]:
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress", [])
    return [entry["ip"] for entry in ingress if "ip" in entry]


def _finalizers(service: Object) -> list[str]:
    names: list[str] = service["metadata"].get("finalizers", [])
    return names


def _set_finalizers(kube: KubeClient, service: Object, names: list[str]) -> None:
    """Raises ApiError if the Service has changed since it was read."""
    metadata = service["metadata"]
    body = {"metadata": {"finalizers": names, "resourceVersion": metadata["resourceVersion"]}}
    kube.patch("v1", "Service", metadata["name"], metadata["namespace"], body)


def _set_ingress(kube: KubeClient, service: Object, ingress: list[Object] | None) -> Object:
    metadata, body = service["metadata"], {"status": {"loadBalancer": {"ingress": ingress}}}
    return kube.patch("v1", "Service", metadata["name"], metadata["namespace"], body, subresource="status")


def _emit(kube: KubeClient, service: Object, severity: Literal["Normal", "Warning"], reason: str, message: str) -> None:
    events.record(kube, service, severity, reason, message, {"component": "service-controller"})
