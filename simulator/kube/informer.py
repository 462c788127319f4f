"""A live copy of a kind's objects (list and watch), and a detector of changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

import httpx

from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient, NoKindMatch

_RETRY_S = 0.5
_log = logging.getLogger(__name__)


class Informer:
    """A live copy of objects. `items()` is always consistent. The thread calls `changed` after each change."""

    def __init__(self, kube: KubeClient, api_version: str, kind: str, changed: Callable[[], None]) -> None:
        self.api_version, self.kind = api_version, kind
        self._kube, self._changed = kube, changed
        self._items: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.synced = threading.Event()
        threading.Thread(target=self._run, name=f"informer-{kind}", daemon=True).start()

    def items(self) -> list[Object]:
        with self._lock:
            return list(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        with self._lock:
            return self._items.get((namespace, name))

    def stop(self) -> None:
        """Stops notifications. The thread ends at its next event or timeout."""
        self._stopped.set()

    def _run(self) -> None:
        logged = ""
        while not self._stopped.is_set():
            try:
                self._list_and_watch()
                logged = ""
            except (ApiError, NoKindMatch) as error:  # the kind may be allowed or served later
                if logged != str(error):
                    logged = str(error)
                    _log.warning("cannot list or watch %s, retrying: %s", self.kind, error)
                time.sleep(_RETRY_S)
            except (httpx.HTTPError, ValueError):  # the server restarts
                time.sleep(_RETRY_S)

    def _list_and_watch(self) -> None:
        path = self._kube.resource(self.api_version, self.kind).path(None)
        listing = self._kube.raw("GET", path)
        typed = ({"apiVersion": self.api_version, "kind": self.kind, **item} for item in listing["items"])
        with self._lock:
            self._items = {_key(item): item for item in typed}
        self.synced.set()
        self._notify()
        version = listing["metadata"]["resourceVersion"]
        for event, obj in self._kube.watch(self.api_version, self.kind, resource_version=version):
            if self._stopped.is_set():
                return
            if event == "BOOKMARK":
                continue
            with self._lock:
                if event == "DELETED":
                    self._items.pop(_key(obj), None)
                else:
                    self._items[_key(obj)] = obj
            self._notify()

    def _notify(self) -> None:
        if not self._stopped.is_set():
            self._changed()


class Changes:
    """Detects changes of objects of some kinds, for code that polls."""

    def __init__(self, kube: KubeClient, kinds: Iterable[tuple[str, str]]) -> None:
        self._some = threading.Event()
        self._informers = [Informer(kube, *kind, self._some.set) for kind in kinds]

    def seen(self) -> bool:
        some = self._some.is_set()
        self._some.clear()
        return some

    def close(self) -> None:
        for informer in self._informers:
            informer.stop()


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
