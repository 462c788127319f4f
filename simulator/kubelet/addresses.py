"""Assigns addresses to pods that run on this machine, and ports of this machine to the pods' ports."""

from __future__ import annotations

import ipaddress
import itertools
import threading
from collections.abc import Callable, Sequence

from k8s.objects import Object
from simulator.host import ports

POD_CIDR = "10.244.128.0/17"
"""The upper half of AKS's pod range, for pods that run on this machine. Pods of KWOK use the lower half."""


class Addresses:
    """Addresses and ports of a cluster's pods. Only the kubelets' loop may call `of`. `port` is thread-safe."""

    def __init__(self, pods: Callable[[], Sequence[Object]]) -> None:
        self._pods = pods
        self._ips: dict[str, str] = {}
        self._hosts = itertools.cycle(ipaddress.ip_network(POD_CIDR).hosts())
        self._ports: dict[tuple[str, str, int], int] = {}
        self._lock = threading.Lock()

    def of(self, pod: Object) -> str:
        """Returns the pod's address, which survives restarts of the simulator."""
        uid = pod["metadata"]["uid"]
        if address := pod.get("status", {}).get("podIP"):
            self._ips[uid] = str(address)
        if uid not in self._ips:
            taken = set(self._ips.values()) | {each.get("status", {}).get("podIP") for each in self._pods()}
            self._ips[uid] = next(str(host) for host in self._hosts if str(host) not in taken)
        return self._ips[uid]

    def port(self, uid: str, container: str, port: int) -> int:
        """Returns this machine's port for a container's port. Containers never share a port of this machine."""
        with self._lock:
            key = (uid, container, port)
            if key not in self._ports:
                self._ports[key] = ports.free(set(self._ports.values()))
            return self._ports[key]

    def forget(self, uid: str) -> None:
        self._ips.pop(uid, None)
        with self._lock:
            self._ports = {key: port for key, port in self._ports.items() if key[0] != uid}
