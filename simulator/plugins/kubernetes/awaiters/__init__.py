"""Waits for objects and deletions. The kind and the annotations skipAwait and timeoutSeconds select the rules."""

from __future__ import annotations

import time
from typing import Final

import httpx

from k8s.objects import Object
from simulator.kube.client import ApiError, NoKindMatch
from simulator.plugins.kubernetes import naming
from simulator.plugins.kubernetes.awaiters import networking, pods, storage, workloads
from simulator.plugins.kubernetes.awaiters.base import AwaitFailed, Check, look_once, wait
from simulator.plugins.kubernetes.engine import WARNING
from simulator.plugins.kubernetes.kinds import kind_of
from simulator.plugins.kubernetes.session import Cancelled, Session

DEFAULT_TIMEOUT_SECONDS: Final = 600.0
_LOOK_EVERY_SECONDS: Final = 0.3
# Kinds that a refresh checks too. The other kinds are awaited only after a creation or change.
_CHECKED: Final[dict[tuple[str, str], Check]] = {
    ("apps/v1", "DaemonSet"): workloads.daemon_set,
    ("apps/v1", "Deployment"): workloads.deployment,
    ("apps/v1", "StatefulSet"): workloads.stateful_set,
    ("batch/v1", "Job"): pods.job,
    ("v1", "Pod"): pods.pod,
    ("v1", "Service"): networking.service,
}
_AWAITED: Final[dict[tuple[str, str], Check]] = _CHECKED | {
    ("v1", "PersistentVolume"): storage.persistent_volume,
    ("v1", "PersistentVolumeClaim"): storage.persistent_volume_claim,
}
# Kinds for which skipAwait also skips the wait for deletions.
_SKIPPED_DELETIONS: Final = {
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("v1", "Namespace"),
    ("v1", "Pod"),
}


def until_ready(
    session: Session, urn: str, inputs: Object, made: Object, before: Object | None, timeout: float
) -> Object:
    """Waits until the object is ready by the rules of its kind. `timeout` 0 means the default.

    Returns the live object. Raises AwaitFailed.
    """
    if naming.annotated(inputs, naming.SKIP_AWAIT):
        return made
    check = _AWAITED.get(_key(made))
    if check is None:
        return made
    return wait(session, urn, made, before, check, timeout_seconds(inputs, timeout))


def check(session: Session, urn: str, inputs: Object, live: Object) -> None:
    """Checks the object once, for a refresh. Raises AwaitFailed if it is not ready."""
    found = _CHECKED.get(_key(live))
    if found is not None and not naming.annotated(inputs, naming.SKIP_AWAIT):
        look_once(session, live, found)
        session.engine.status(urn, "")


def until_deleted(session: Session, urn: str, inputs: Object, live: Object, timeout: float) -> None:
    """Waits until the object is gone or a new object has its name. Raises AwaitFailed at the timeout."""
    if naming.annotated(inputs, naming.SKIP_AWAIT) and _key(live) in _SKIPPED_DELETIONS:
        return
    deadline, shown = time.monotonic() + timeout_seconds(inputs, timeout), ""
    try:
        while (remaining := _remaining(session, live)) is not None:
            if (holding := _holding(remaining)) != shown:
                session.engine.status(urn, shown := holding)
            if time.monotonic() >= deadline:
                finalizers = ", ".join(remaining["metadata"].get("finalizers", []))
                session.engine.log(urn, f"finalizers might be preventing deletion ({finalizers})", WARNING)
                raise AwaitFailed("timed out waiting for the condition", remaining)
            session.sleep(_LOOK_EVERY_SECONDS)
    except Cancelled:
        raise AwaitFailed(f'Resource operation was cancelled for "{naming.name_of(live)}"', live) from None
    session.engine.status(urn, "")


def timeout_seconds(inputs: Object, timeout: float) -> float:
    annotated = naming.annotation(inputs, naming.TIMEOUT)
    return timeout or (float(annotated) if annotated.isdigit() else DEFAULT_TIMEOUT_SECONDS)


def _remaining(session: Session, live: Object) -> Object | None:
    kind, metadata = kind_of(live), live["metadata"]
    try:
        found = session.kube.get(kind.api_version, kind.name, metadata["name"], metadata.get("namespace"))
    except NoKindMatch:
        return None
    except ApiError as error:
        if error.not_found:
            return None
        if error.passing:
            return live
        raise AwaitFailed(str(error), live) from error
    except httpx.TransportError:  # the API server restarts
        return live
    return found if found["metadata"].get("uid") == metadata.get("uid", found["metadata"].get("uid")) else None


def _holding(live: Object) -> str:
    finalizers = live["metadata"].get("finalizers")
    return (
        f"Resource scheduled for deletion (finalizers: {', '.join(finalizers)})"
        if finalizers
        else "Resource scheduled for deletion"
    )


def _key(obj: Object) -> tuple[str, str]:
    kind = kind_of(obj)
    return kind.api_version, kind.name
