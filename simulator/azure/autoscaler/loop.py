"""Runs the autoscaler of each cluster with an autoscaled pool."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import httpx

from k8s.objects import has_ended
from simulator.azure.arm_world import World
from simulator.azure.autoscaler.groups import is_scaled
from simulator.azure.autoscaler.profile import Profile
from simulator.azure.autoscaler.scaler import Scaler
from simulator.azure.operations import Operations
from simulator.azure.store import Record
from simulator.azure.types.agent_pool.life import of_cluster
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.kube.client import ApiError, KubeClient
from simulator.kube.informer import Informer

_TICK_S = 1.0
_log = logging.getLogger(__name__)


class Autoscaler:
    """The autoscaler of all clusters, until `stop`."""

    def __init__(self, world: World, operations: Operations, client: Callable[[str], KubeClient | None]) -> None:
        """Starts the loop. `client` returns the client of a cluster (by id), or None if it is not running."""
        self._world, self._operations, self._client = world, operations, client
        self._watched: dict[str, _Watched] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="autoscaler", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_S):
            there = {cluster.id.key: cluster for cluster in self._world.store.all(clusters.TYPE)}
            for key, cluster in there.items():
                try:
                    self._look(key, cluster)
                except (ApiError, httpx.HTTPError):  # the API server restarts: retry at the next tick
                    continue
                except Exception:  # noqa: BLE001 - one cluster's error must not stop others; it is logged
                    _log.exception("autoscaler of %s", cluster.id.name)
            for key in self._watched.keys() - there.keys():
                self._watched.pop(key).stop()
        for watched in self._watched.values():
            watched.stop()

    def _look(self, key: str, cluster: Record) -> None:
        scaled = any(is_scaled(pool) for pool in of_cluster(self._world, cluster.id))
        kube = self._client(cluster.id.text) if scaled else None
        watched = self._watched.get(key)
        if watched and watched.kube is not kube:
            self._watched.pop(key).stop()
            watched = None
        if kube is None:
            return
        if watched is None:
            watched = self._watched[key] = _Watched(self._world, self._operations, kube)
        watched.look(cluster)


class _Watched:
    def __init__(self, world: World, operations: Operations, kube: KubeClient) -> None:
        self.kube, self._next = kube, 0.0
        self._nodes = Informer(kube, "v1", "Node", lambda: None)
        self._pods = Informer(kube, "v1", "Pod", lambda: None)
        self._scaler = Scaler(world, operations, kube, time.monotonic)

    def look(self, cluster: Record) -> None:
        synced = self._nodes.synced.is_set() and self._pods.synced.is_set()
        if synced and not cluster.busy and time.monotonic() >= self._next:
            self._next = time.monotonic() + Profile(cluster.properties.get("autoScalerProfile")).interval_s
            # Upstream ignores ended pods too (cluster-autoscaler/utils/kubernetes/listers.go, AllPodLister.List).
            pods = [pod for pod in self._pods.items() if not has_ended(pod)]
            self._scaler.look(cluster, self._nodes.items(), pods)

    def stop(self) -> None:
        self._nodes.stop()
        self._pods.stop()
