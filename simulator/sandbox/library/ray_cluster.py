"""The nodes of a Ray cluster. Each pod that runs `ray start` publishes itself and the head that it has joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.sandbox.library import view
from simulator.sandbox.library.view import Pod, View

VERSION = "2.60.0"
GCS_PORT, DASHBOARD_PORT, AGENT_PORT = 6379, 8265, 52365
LOST_AFTER_S = 60
"""A node ends after this time without its head (gcs_rpc_server_reconnect_timeout_s)."""
_DOCUMENT = "ray"


def join(head: str) -> None:
    """Publishes that this pod is a node of the cluster with this head."""
    view.tell(_DOCUMENT, {"head": head})


def head_at(known: View, address: str) -> Pod | None:
    """Returns the head behind `host:port`, if it answers there."""
    host, _, port = address.rpartition(":")
    pod = known.resolve(host)
    return pod if pod and port == str(GCS_PORT) and _of(pod).get("head") == pod.key and answers(known, pod) else None


def workers(known: View, head: str) -> list[Pod]:
    """Returns nodes with GPUs that joined this head and answer, by name."""
    found = (pod for pod in known.pods.values() if pod.key != head and _of(pod).get("head") == head)
    return sorted((pod for pod in found if answers(known, pod) and pod.facts["gpus"]), key=lambda pod: pod.key)


def answers(known: View, pod: Pod) -> bool:
    """Reports whether other pods can reach it."""
    return pod.running and bool(known.node_of(pod)["ready"])


def _of(pod: Pod) -> Mapping[str, Any]:
    return pod.said(_DOCUMENT) or {}
