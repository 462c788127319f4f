"""Long-running operations: bring what is behind resources to what the store says, also after a kill in the middle.

An operation is a resource whose provisioningState is Creating, Updating or Deleting. Nothing else is kept about it, so
a restarted server finds what was cut short and goes on; what is done twice has no further effect.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

from config.facts import skus
from simulator.azure import faults, nodes, reservations
from simulator.azure.backend import Node
from simulator.azure.errors import ArmError
from simulator.azure.ids import GROUP_TYPE, ResourceId
from simulator.azure.kinds import KINDS, clusters, pools
from simulator.azure.store import Body, Record
from simulator.azure.world import World

_log = logging.getLogger(__name__)
_THREADS = 8
ALLOCATION_S = 3.0
"""How long machines are looked for in vain; on Azure minutes."""


class Operations:
    """Runs operations in threads, one at a time per cluster, and per resource outside of clusters."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="arm")
        self._running: set[Future[None]] = set()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._stopping = threading.Event()

    def resume(self) -> None:
        """Boots what stands behind resources and finishes what a kill cut short."""
        for pool in self._world.store.all(pools.TYPE):
            if (cluster := pool.id.parent) and self._world.store.get(cluster) is None:
                self._world.store.remove(pool.id)  # written for a cluster that then was not
        for record in self._world.store.all(clusters.TYPE):
            self.start(record.id)
        for record in self._world.store.all():
            kind = KINDS.get(record.id.type.lower())
            stands = kind is not None and kind.asynchronous and record.id.type != pools.TYPE
            if record.id.type != clusters.TYPE and (record.busy or stands):
                self.start(record.id)

    def start(self, resource: ResourceId) -> Future[None]:
        future = self._executor.submit(self._run, resource)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def wait(self, timeout: float) -> bool:
        """Whether all operations begun so far ended within this many seconds."""
        return not wait(list(self._running), timeout).not_done

    def stop(self) -> None:
        """Begins nothing more. What is cut short keeps its state, and is resumed at the next start."""
        self._stopping.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, resource: ResourceId) -> None:
        began = self._world.store.get(resource)
        try:
            if resource.type == GROUP_TYPE:
                self._delete_group(resource)
            elif cluster := _cluster_of(resource):
                self._allocate(resource, cluster)
                with self._locks[cluster.key]:
                    self._converge(resource, cluster)
            else:
                with self._locks[resource.key]:
                    self._settle(resource)
        except ArmError as error:
            self._fail(resource, began, error.body()["error"])
        except Exception as error:  # noqa: BLE001 - it becomes the state of the resource, and is logged
            _log.exception("operation on %s", resource.text)
            message = str(error) or type(error).__name__
            self._fail(resource, began, {"code": "InternalOperationError", "message": message})

    def _allocate(self, resource: ResourceId, cluster: ResourceId) -> None:
        """Finds machines for the pools that the operation is on. Raises ArmError, after a while, where there are none.

        Holds nothing back meanwhile: other pools go on, and the pool itself can be deleted.
        """
        store = self._world.store
        record = store.get(resource)
        if record is None or not record.busy:
            return
        for pool in pools.of_cluster(self._world, cluster):
            if not pool.busy or resource not in (cluster, pool.id):
                continue
            wanted = int(pool.properties["count"])
            own = reservations.free(self._world, pool.properties, pool.id)
            if (
                wanted > own
                and wanted > pool.facts.get(pools.VMS, 0)
                and (failure := faults.allocation_failure(self._world, pool))
            ):
                self._stopping.wait(ALLOCATION_S)
                raise failure
            with store.lock:
                if now := store.get(pool.id):
                    now.facts[pools.VMS] = wanted
                    store.put(now)

    def _converge(self, resource: ResourceId, cluster: ResourceId) -> None:
        record = self._world.store.get(resource)
        if record is None:
            return
        if resource == cluster and record.state == "Deleting":
            self._delete_cluster(cluster)
            return
        self._world.backend.create(cluster.text)
        self._world.backend.set_storage(cluster.text, self._storage_profile(cluster))
        self._world.backend.set_nodes(cluster.text, node_objects(self._world, cluster))
        if record.state == "Deleting":
            self._world.store.remove(resource)
            return
        # A cluster that only boots again has no say in pools of which an operation of their own goes on.
        inline = pools.of_cluster(self._world, cluster) if resource == cluster and record.busy else []
        for done in (*inline, record):
            self._succeed(done)

    def _storage_profile(self, cluster: ResourceId) -> Body:
        record = self._world.store.get(cluster)
        profile: Body = record.properties.get("storageProfile", {}) if record else {}
        return profile

    def _settle(self, resource: ResourceId) -> None:
        record = self._world.store.get(resource)
        if record is None:
            return
        if record.state == "Deleting":
            remove(self._world, record)
            return
        KINDS[resource.type.lower()].settle(self._world, record)
        self._succeed(record)

    def _delete_cluster(self, cluster: ResourceId) -> None:
        self._world.backend.delete(cluster.text)
        for child in self._world.store.within(cluster):
            self._world.store.remove(child.id)
        self._world.store.remove(cluster)

    def _delete_group(self, group: ResourceId) -> None:
        for record in self._world.store.within(group):
            if record.id.type == clusters.TYPE:
                with self._locks[record.id.key]:
                    self._delete_cluster(record.id)
        if found := self._world.store.get(group):
            remove(self._world, found)

    def _succeed(self, done: Record) -> None:
        """Unless something else, such as a deletion, has begun meanwhile."""
        store = self._world.store
        with store.lock:
            now = store.get(done.id)
            if now and now.state == done.state and now.busy:
                version = self._world.subscription.kubernetes(now.properties.get("orchestratorVersion", ""))
                now.facts |= {"kubernetes": version} if version else {}
                now.state, now.error = "Succeeded", None
                store.put(now)

    def _fail(self, resource: ResourceId, began: Record | None, error: Body) -> None:
        """Unless something else, such as a deletion, has begun meanwhile."""
        store = self._world.store
        if self._stopping.is_set():  # clusters end under the operation's feet: that is no failure of its own
            return
        with store.lock:
            now = store.get(resource)
            if now is None or began is None or now.state != began.state:
                return
            for record in (now, *store.within(resource)):
                if record.busy:
                    record.state, record.error = "Failed", error
                    store.put(record)


def remove(world: World, record: Record) -> None:
    """A resource, what is in it or on it (role assignments), and what is behind them; what is inside first.

    Not for clusters, whose control plane is stopped before.
    """
    for inner in reversed(world.store.within(record.id)):
        if world.store.get(inner.id):
            remove(world, inner)
    if kind := KINDS.get(record.id.type.lower()):
        kind.removed(world, record)
    world.store.remove(record.id)


def node_objects(world: World, cluster: ResourceId, counts: Mapping[str, int] | None = None) -> list[Node]:
    """All Node objects that the pools of a cluster ask for; `counts` are others than theirs, by the pools' keys."""
    record = world.store.get(cluster)
    if record is None:
        return []
    found: list[Node] = []
    for pool in pools.of_cluster(world, cluster):
        properties = pool.properties
        version = world.subscription.kubernetes(properties["orchestratorVersion"]) or properties["orchestratorVersion"]
        shape = nodes.Pool(
            id=pool.id.text,
            name=pool.id.name,
            properties=properties | {"count": (counts or {}).get(pool.id.key, pools.machines(pool))},
            location=record.body["location"],
            node_group=clusters.node_group(record),
            kubernetes=version,
            index=int(pool.facts["index"]),
            one_fabric=bool(pool.facts["one_fabric"]),
        )
        found += nodes.manifests(shape, skus.sku(properties["vmSize"]))
    return found


def _cluster_of(resource: ResourceId) -> ResourceId | None:
    if resource.type == clusters.TYPE:
        return resource
    return resource.parent if resource.type == pools.TYPE else None
