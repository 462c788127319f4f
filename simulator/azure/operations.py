"""Long-running operations, which reconcile backends with the store.

A resource with the provisioningState Creating, Updating or Deleting has an operation. Operations have no other state,
so a restarted server continues interrupted operations. All steps are idempotent.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError
from simulator.azure.ids import ResourceId
from simulator.azure.kind import Kind
from simulator.azure.resource_types import kinds
from simulator.azure.store import Body, Record

_log = logging.getLogger(__name__)
_THREADS = 8


class Operations:
    """Runs one operation at a time for a cluster and its pools. Other operations run in parallel."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="arm")
        self._running: set[Future[None]] = set()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._stopping = threading.Event()

    def resume(self) -> None:
        """Starts the backends of resources and continues interrupted operations."""
        store = self._world.store
        for record in store.all():
            if record.id.is_child and store.get(record.id.parent) is None:
                store.remove(record.id)  # killed between storing a pool and storing its cluster
        for record in store.all():
            kind = kinds().get(record.id.type.lower())
            if record.busy or (kind and _owns_lock(kind, record.id)):
                self.start(record.id)

    def start(self, resource: ResourceId) -> Future[None]:
        future = self._executor.submit(self._run, resource)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def wait(self, timeout: float) -> bool:
        return not wait(list(self._running), timeout).not_done

    def stop(self) -> None:
        """Prevents new operations. Interrupted operations continue at the next start."""
        self._stopping.set()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, resource: ResourceId) -> None:
        began = self._world.store.get(resource)
        if began is None:
            return
        kind = kinds()[resource.type.lower()]
        try:
            if began.busy and began.state != "Deleting":
                kind.prepare(self._world, began, self._stopping.wait)
            with self._locks[kind.lock_owner(resource).key]:
                self._converge(kind, resource)
        except ArmError as error:
            self._fail(resource, began, error.body()["error"])
        except Exception as error:  # noqa: BLE001 - it becomes the resource's state, and is logged
            _log.exception("operation on %s", resource.text)
            message = str(error) or type(error).__name__
            self._fail(resource, began, {"code": "InternalOperationError", "message": message})

    def _converge(self, kind: Kind, resource: ResourceId) -> None:
        record = self._world.store.get(resource)
        if record is None:
            return
        if record.state == "Deleting":
            self._delete(kind, record)
            return
        kind.settle(self._world, record)
        # A cluster without an operation does not end its pools' operations.
        for done in (*(kind.inline(self._world, record) if record.busy else ()), record):
            self._succeed(done)

    def _delete(self, kind: Kind, record: Record) -> None:
        """Begins with inner resources that have their own operations (a group's clusters)."""
        for inner in self._world.store.within(record.id):
            within = kinds().get(inner.id.type.lower())
            if within is None or not _owns_lock(within, inner.id):
                continue
            with self._locks[inner.id.key]:
                if now := self._world.store.get(inner.id):
                    self._delete(within, now)
        kind.end(self._world, record)
        remove(self._world, record)

    def _succeed(self, done: Record) -> None:
        """Marks a resource as Succeeded, unless another operation (such as a deletion) has started."""
        store = self._world.store
        with store.lock:
            now = store.get(done.id)
            if now and now.state == done.state and now.busy:
                kinds()[now.id.type.lower()].succeeded(self._world, now)
                now.state, now.error = "Succeeded", None
                store.put(now)

    def _fail(self, resource: ResourceId, began: Record, error: Body) -> None:
        store = self._world.store
        if self._stopping.is_set():  # the error may come from the stop of the clusters
            return
        with store.lock:
            now = store.get(resource)
            if now is None or now.state != began.state:
                return
            for record in (now, *store.within(resource)):
                if record.busy:
                    record.state, record.error = "Failed", error
                    store.put(record)


def remove(world: World, record: Record) -> None:
    """Removes a resource and its backend, after its children and extensions (role assignments)."""
    for inner in world.store.within(record.id):
        if world.store.get(inner.id):
            remove(world, inner)
    if kind := kinds().get(record.id.type.lower()):
        kind.removed(world, record)
    world.store.remove(record.id)


def _owns_lock(kind: Kind, resource: ResourceId) -> bool:
    return kind.asynchronous and kind.lock_owner(resource) == resource
