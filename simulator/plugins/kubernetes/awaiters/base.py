"""Polls an object until it is ready, the time is over, or the operation is cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import httpx

from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from simulator.plugins.kubernetes.kinds import kind_of
from simulator.plugins.kubernetes.session import Cancelled, Session

_LOOK_EVERY_SECONDS: Final = 0.5


class AwaitFailed(Exception):
    """An object did not become ready. `reasons` describe its last state."""

    def __init__(self, message: str, live: Object, reasons: list[str] | None = None) -> None:
        super().__init__(message)
        self.live, self.reasons = live, reasons or []


@dataclass(frozen=True)
class Progress:
    """The result of one check of an object.

    Pulumi shows `status` next to the resource. `failed` ends the wait: the object can never become ready. `enough`: the
    object counts as ready at the timeout, on cancellation, and in a refresh.
    """

    done: bool
    enough: bool = False
    status: str = ""
    reasons: list[str] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True)
class Look:
    """The input of a check: the object now and before an update (None if new), and the API server."""

    kube: KubeClient
    live: Object
    before: Object | None = None

    @property
    def name(self) -> str:
        return str(self.live["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        found: str | None = self.live["metadata"].get("namespace")
        return found

    @property
    def display_name(self) -> str:
        """The name, with the namespace if that is not `default`."""
        return self.name if self.namespace in (None, "default") else f"{self.namespace}/{self.name}"

    @property
    def observed(self) -> bool:
        """Whether the status describes the newest specification."""
        generation = self.live["metadata"].get("generation", 0)
        return bool(self.live.get("status", {}).get("observedGeneration", -1) >= generation)

    def owned_pods(self, owner: Object) -> list[Object]:
        return self.owned("v1", "Pod", owner)

    def owned(self, api_version: str, kind: str, owner: Object) -> list[Object]:
        uid = owner["metadata"]["uid"]
        found = self.kube.list(api_version, kind, self.namespace)
        return [
            item for item in found if any(ref.get("uid") == uid for ref in item["metadata"].get("ownerReferences", []))
        ]


Check = Callable[[Look], Progress]


def wait(session: Session, urn: str, made: Object, before: Object | None, check: Check, seconds: float) -> Object:
    """Waits until the object is ready and returns it. Raises AwaitFailed at the timeout, on failure or cancellation."""
    deadline, shown = time.monotonic() + seconds, ""
    live, progress = made, Progress(done=False)
    while True:
        live, progress = _look(session, live, before, check)
        over = time.monotonic() >= deadline
        if progress.done or (over and progress.enough):
            session.engine.status(urn, "")
            return live
        if progress.failed:
            raise AwaitFailed(_not_initialized(live), live, progress.reasons)
        if progress.status != shown:
            session.engine.status(urn, shown := progress.status)
        if over:
            raise AwaitFailed(f"'{_name(live)}' timed out waiting to be Ready", live, progress.reasons)
        try:
            session.sleep(min(_LOOK_EVERY_SECONDS, max(0.0, deadline - time.monotonic())))
        except Cancelled:
            if progress.enough:
                return live
            message = f'Resource operation was cancelled for "{_name(live)}"'
            raise AwaitFailed(message, live, progress.reasons) from None


def look_once(session: Session, live: Object, check: Check) -> None:
    """Checks the object once, without waiting. Raises AwaitFailed if it is not ready."""
    progress = check(Look(session.kube, live))
    if not progress.done and not progress.enough:
        raise AwaitFailed(_not_initialized(live), live, progress.reasons)


def _look(session: Session, live: Object, before: Object | None, check: Check) -> tuple[Object, Progress]:
    """Returns the object and its progress. Raises AwaitFailed, with the object, for a permanent error."""
    kind, metadata = kind_of(live), live["metadata"]
    try:
        live = session.kube.get(kind.api_version, kind.name, metadata["name"], metadata.get("namespace"))
        return live, check(Look(session.kube, live, before))
    except (ApiError, NoKindMatch, httpx.TransportError) as error:
        passing = error.passing if isinstance(error, ApiError) else isinstance(error, httpx.TransportError)
        if passing:  # the API server restarts
            return live, Progress(done=False, status=f"The API server does not answer: {error}", reasons=[str(error)])
        raise AwaitFailed(str(error), live) from error


def _name(live: Object) -> str:
    return str(live["metadata"]["name"])


def _not_initialized(live: Object) -> str:
    return f"Resource '{_name(live)}' was created but failed to initialize"
