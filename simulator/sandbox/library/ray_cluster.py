"""Nodes of a Ray cluster. A pod that runs `ray start` publishes the pod of its head. A head publishes its own pod."""

from __future__ import annotations

from simulator.sandbox.library import view
from simulator.sandbox.library.view import Pod, View

GCS_PORT = "6379"
_DOCUMENT = "ray"


def join(head: str) -> None:
    view.publish(_DOCUMENT, {"head": head})


def head_at(known: View, address: str) -> Pod | None:
    host, _, port = address.rpartition(":")
    pod = known.resolve(host)
    return pod if pod and port == GCS_PORT and _head_of(pod) == pod.key and answers(known, pod) else None


def workers(known: View, head: str) -> list[Pod]:
    found = (pod for pod in known.pods.values() if pod.key != head and _head_of(pod) == head)
    return sorted((pod for pod in found if answers(known, pod) and pod.facts["gpus"]), key=lambda pod: pod.key)


def answers(known: View, pod: Pod) -> bool:
    return pod.running and bool(known.node_of(pod)["ready"])


def _head_of(pod: Pod) -> str:
    return str((pod.published(_DOCUMENT) or {}).get("head", ""))
