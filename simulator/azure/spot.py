"""Evictions of Spot machines: Azure's notice, AKS's drain, and the machine's removal 30 seconds later.

Sources:

- Azure's page on Spot scale sets (30 seconds)
- AKS's page on node auto-drain (for Preempt: taint, cordon, and a drain that can fail)
- AKS's page on its node problem detector (condition, events); texts: maksim-paskal/aks-node-termination-handler#98
- AKS's page on Spot pools: the policy Delete removes the machine and reduces the pool's count. Deallocate stops the
  machine and keeps it.
"""

from __future__ import annotations

import datetime
import email.utils
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping

import httpx

from k8s.objects import Object
from simulator.azure import faults
from simulator.azure.arm_world import World
from simulator.azure.operations import Operations
from simulator.azure.store import Record
from simulator.azure.types.agent_pool import life
from simulator.kube import drain, events
from simulator.kube.client import STRATEGIC_MERGE_PATCH, ApiError, KubeClient
from simulator.world.evictions import Eviction, EvictionStore, Rate
from simulator.world.faults import Fault, FaultKind

NOTICE_S = 30.0
_TICK_S = 1.0
_TAINT = {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"}
_CONDITION = "VMEventScheduled"
_SOURCE = {"component": "custom-scheduledevents-consolidated-condition-plugin-monitor"}
_log = logging.getLogger(__name__)


def machines(pools: Iterable[Record]) -> dict[str, tuple[Record, int]]:
    return life.by_node(
        pool for pool in pools if pool.properties.get("scaleSetPriority") == "Spot" and pool.state != "Deleting"
    )


class Evictor:
    """Performs requested evictions until `stop`."""

    def __init__(
        self,
        world: World,
        operations: Operations,
        client: Callable[[str], KubeClient | None],
        store: EvictionStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the loop. `client` returns the client of a cluster (by id), or None if it is not running."""
        self._world, self._operations, self._client, self._store, self._clock = world, operations, client, store, clock
        self._noticed: dict[str, float] = {}
        """The time of Azure's notice, by node."""
        self._rate: Rate | None = None
        self._random, self._next = random.Random(), 0.0  # noqa: S311 - chooses nodes and times
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="evictor", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - one eviction's error must not stop others; it is logged
                _log.exception("evictions")

    def look(self) -> None:
        found = machines(self._world.store.all(life.TYPE))
        self._draw(found)
        self._price(found)
        for eviction in self._store.all():
            if eviction.node not in found:
                self._over(eviction)
            else:
                pool, number = found[eviction.node]
                self._advance(eviction, pool, number)

    def _draw(self, found: Iterable[str]) -> None:
        """Requests random evictions at the configured rate. The rate's seed makes the evictions repeatable."""
        now, rate = self._clock(), self._store.rate()
        if rate != self._rate:
            self._rate = rate
            self._random = random.Random(rate.seed if rate else 0)  # noqa: S311 - chooses nodes and times
            self._next = now + self._pause()
        if rate and now >= self._next:
            self._next = now + self._pause()
            going = {eviction.node for eviction in self._store.all()}
            if staying := sorted(set(found) - going):
                self._store.ask(Eviction(self._random.choice(staying), rate.drains))

    def _price(self, found: Mapping[str, tuple[Record, int]]) -> None:
        going = {eviction.node for eviction in self._store.all()}
        for node, (pool, _) in found.items():
            if node not in going and faults.price_above_maximum(self._world, pool):
                self._store.ask(Eviction(node))

    def _pause(self) -> float:
        return self._random.expovariate(self._rate.per_hour / 3600) if self._rate else 0.0

    def _advance(self, eviction: Eviction, pool: Record, number: int) -> None:
        now = self._clock()
        first = eviction.node not in self._noticed
        began = self._noticed.setdefault(eviction.node, now)
        if now >= began + NOTICE_S:
            self._take(eviction, pool, number)
            return
        kube = self._client(pool.id.parent.text)
        try:
            node = kube.find("v1", "Node", eviction.node) if kube else None
            if kube and node and first:
                _notify(kube, node, began + NOTICE_S - now)
            if kube and node and eviction.drains:
                _drain(kube, node)
        except (ApiError, httpx.HTTPError):  # the API server restarts; the eviction continues
            return

    def _take(self, eviction: Eviction, pool: Record, number: int) -> None:
        if pool.properties.get("scaleSetEvictionPolicy") == "Deallocate":
            self._world.faults.fault(Fault(eviction.node, FaultKind.NODE))
        else:
            life.remove(self._world, pool, [number])
            self._operations.start(pool.id)
        self._over(eviction)

    def _over(self, eviction: Eviction) -> None:
        self._store.over(eviction.node)
        self._noticed.pop(eviction.node, None)


def _notify(kube: KubeClient, node: Object, left_s: float) -> None:
    at = datetime.datetime.now(datetime.UTC)
    when = email.utils.format_datetime(at + datetime.timedelta(seconds=left_s), usegmt=True)
    message = (
        f"Preempt Scheduled: {when}. DurationInSeconds: -1.  For more information, see "
        "https://aka.ms/aks/scheduledevents."
    )
    condition = {
        "type": _CONDITION,
        "status": "True",
        "reason": _CONDITION,
        "message": message,
        "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    body = {"status": {"conditions": [condition]}}
    name, options = node["metadata"]["name"], {"subresource": "status", "content_type": STRATEGIC_MERGE_PATCH}
    kube.patch("v1", "Node", name, None, body, **options)
    target = {"apiVersion": "v1", "kind": "Node", **node}
    text = f'Node condition {_CONDITION} is now: True, reason: {_CONDITION}, message: "{message}"'
    events.record(kube, target, "Warning", _CONDITION, text, _SOURCE)
    events.record(kube, target, "Warning", "PreemptScheduled", message, _SOURCE)


def _drain(kube: KubeClient, node: Object) -> None:
    name, taints = node["metadata"]["name"], node["spec"].get("taints") or []
    if _TAINT not in taints:
        kube.patch("v1", "Node", name, None, {"spec": {"unschedulable": True, "taints": [*taints, _TAINT]}})
    for pod in drain.to_move(kube.list("v1", "Pod", fields=f"spec.nodeName={name}"), name):
        drain.evict(kube, pod)
