"""A reconcile loop, server-side apply, and helpers for pods and nodes, for simulated controllers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import httpx

from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient, NoKindMatch, ignore_missing
from simulator.kube.informer import Changes
from simulator.kubelet.programs import PodContext

RESYNC_S = 30.0
IDLE_S = 10.0


class Nodes(Protocol):
    """The method of KubeClient that sets labels and annotations."""

    def patch(self, api_version: str, kind: str, name: str, namespace: str | None, body: Any) -> Object: ...


def reconcile(
    ctx: PodContext,
    stop: threading.Event,
    step: Callable[[], None],
    seconds: float = 1.0,
    watched: Iterable[tuple[str, str]] = (),
) -> None:
    """Calls `step` every `seconds` until `stop` is set.

    If `watched` has kinds, calls `step` only when an object of these kinds has changed, or after IDLE_S seconds.
    Retries after errors of the API server. Logs a repeated error once.
    """
    with contextlib.closing(Changes(ctx.kube, watched)) as changes:
        reported, due = "", 0.0
        while not stop.is_set():
            if changes.seen() or time.monotonic() >= due:
                try:
                    step()
                    reported, due = "", time.monotonic() + (IDLE_S if watched else 0)
                except (ApiError, NoKindMatch, httpx.TransportError) as error:
                    due = 0.0
                    if str(error) != reported:
                        reported = str(error)
                        ctx.log(f"error: {reported}")
            stop.wait(seconds)


class Applier:
    """Applies objects server-side. Applies an unchanged object again only if it is lost, or after RESYNC_S."""

    def __init__(self, kube: KubeClient, manager: str) -> None:
        self._kube, self._manager = kube, manager
        self._done: dict[tuple[str, str, str], tuple[str, float]] = {}

    def apply(self, obj: Object, *, lost: bool = False) -> bool:
        """Applies the object if needed. Returns True if its content changed."""
        metadata = obj["metadata"]
        key = (obj["kind"], metadata.get("namespace", ""), metadata["name"])
        digest, at = self._done.get(key, ("", 0.0))
        wanted = digest_of(obj)
        if digest == wanted and not lost and time.monotonic() - at < RESYNC_S:
            return False
        self._kube.apply(obj, field_manager=self._manager, force=True)
        self._done[key] = (wanted, time.monotonic())
        return digest != wanted


class Operator(ABC):
    """The base class of operators of custom resources. `step` reads all objects and acts on them once."""

    def __init__(self, ctx: PodContext, manager: str, resource: tuple[str, str]) -> None:
        """`manager` is the field manager; `resource` is the kind that the operator acts on."""
        self._ctx, self._kube = ctx, ctx.kube
        self._watched = (resource, ("v1", "Node"), ("v1", "Pod"), ("apps/v1", "DaemonSet"))
        self._namespace: str = ctx.pod["metadata"]["namespace"]
        self._applier = Applier(ctx.kube, manager)

    def run(self, stop: threading.Event) -> None:
        reconcile(self._ctx, stop, self.step, watched=self._watched)

    @abstractmethod
    def step(self) -> None: ...

    def _write_status(self, policy: Object, status: Object) -> None:
        before = policy.get("status", {})
        if before == {**before, **status}:
            return
        api, kind, name = policy["apiVersion"], policy["kind"], policy["metadata"]["name"]
        ignore_missing(lambda: self._kube.patch(api, kind, name, None, {"status": status}, subresource="status"))
        if before.get("state") != status["state"]:
            self._ctx.log(f"{kind} {name}: {status['state']}")


def is_rolled_out(daemonset: Object) -> bool:
    """Returns whether all pods are up to date and available. True if the DaemonSet has no pods."""
    status = daemonset.get("status", {})
    desired = status.get("desiredNumberScheduled", 0)
    if status.get("observedGeneration") != daemonset["metadata"]["generation"]:
        return False
    return bool(desired == status.get("updatedNumberScheduled", 0) == status.get("numberAvailable", 0))


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def label(obj: Object, name: str) -> str | None:
    value: str | None = obj["metadata"].get("labels", {}).get(name)
    return value


def labelled(objects: Iterable[Object], name: str, value: str | None = None) -> list[Object]:
    return [obj for obj in objects if (found := label(obj, name)) is not None and value in (None, found)]


def set_labels(kube: Nodes, node: Object, wanted: Mapping[str, str | None]) -> bool:
    """Sets the labels of a node. Removes labels with the value None. Returns False if nothing changed."""
    labels = node["metadata"].setdefault("labels", {})
    changes = {key: value for key, value in wanted.items() if labels.get(key) != value}
    if changes:
        kube.patch("v1", "Node", node["metadata"]["name"], None, {"metadata": {"labels": changes}})
        node["metadata"]["labels"] = {k: v for k, v in (labels | changes).items() if v is not None}
    return bool(changes)


def owner_reference(owner: Object, *, controller: bool = False) -> Object:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    return reference | ({"controller": True, "blockOwnerDeletion": True} if controller else {})
