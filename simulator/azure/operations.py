"""Long-running operations: bring what is behind resources to what the store says, also after a kill in the middle.

An operation is a resource whose provisioningState is Creating, Updating or Deleting. Nothing else is kept about it, so
a restarted server finds what was cut short and goes on; what is done twice has no further effect.
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
from simulator.azure.rooms import kinds
from simulator.azure.store import Body, Record

_log = logging.getLogger(__name__)
_THREADS = 8


class Operations:
    """Runs operations in threads, one at a time of each turn: of a cluster and its pools, of any other resource."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="arm")
        self._running: set[Future[None]] = set()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._stopping = threading.Event()

    def resume(self) -> None:
        """Boots what stands behind resources and finishes what a kill cut short."""
        store = self._world.store
        for record in store.all():
            if (parent := record.id.parent) and store.get(parent) is None:
                store.remove(record.id)  # a pool that was written for a cluster that then was not
        for record in store.all():
            kind = kinds().get(record.id.type.lower())
            if record.busy or (kind and _has_own_turn(kind, record.id)):
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
        if began is None:
            return
        kind = kinds()[resource.type.lower()]
        try:
            if began.busy and began.state != "Deleting":
                kind.prepare(self._world, began, self._stopping.wait)
            with self._turns[kind.turn(resource).key]:
                self._converge(kind, resource)
        except ArmError as error:
            self._fail(resource, began, error.body()["error"])
        except Exception as error:  # noqa: BLE001 - it becomes the state of the resource, and is logged
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
        # A cluster that only boots again has no say in pools of which an operation of their own goes on.
        for done in (*(kind.inline(self._world, record) if record.busy else ()), record):
            self._succeed(done)

    def _delete(self, kind: Kind, record: Record) -> None:
        """Deletes what has a life of its own inside (the clusters of a group) in its own turn, then the rest."""
        for inner in self._world.store.within(record.id):
            within = kinds().get(inner.id.type.lower())
            if within is None or not _has_own_turn(within, inner.id):
                continue
            with self._turns[inner.id.key]:
                if now := self._world.store.get(inner.id):
                    self._delete(within, now)
        kind.end(self._world, record)
        remove(self._world, record)

    def _succeed(self, done: Record) -> None:
        """Unless something else, such as a deletion, has begun meanwhile."""
        store = self._world.store
        with store.lock:
            now = store.get(done.id)
            if now and now.state == done.state and now.busy:
                kinds()[now.id.type.lower()].succeeded(self._world, now)
                now.state, now.error = "Succeeded", None
                store.put(now)

    def _fail(self, resource: ResourceId, began: Record, error: Body) -> None:
        """Unless something else, such as a deletion, has begun meanwhile."""
        store = self._world.store
        if self._stopping.is_set():  # clusters end under the operation's feet: that is no failure of its own
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
    """A resource, what is in it or on it (role assignments), and what is behind them; what is inside first."""
    for inner in world.store.within(record.id):
        if world.store.get(inner.id):
            remove(world, inner)
    if kind := kinds().get(record.id.type.lower()):
        kind.removed(world, record)
    world.store.remove(record.id)


def _has_own_turn(kind: Kind, resource: ResourceId) -> bool:
    return kind.asynchronous and kind.turn(resource) == resource
