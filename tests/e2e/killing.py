from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from simulator.kube.client import ApiError, KubeClient
from tests.support.checkout import Checkout, clients, kill
from tests.support.world import eventually

STACK_STATE = Path("state/.pulumi/stacks/ai-on-aks/dev.json")
CLUSTER = Path("clusters/ai-on-aks-dev+ai-on-aks-dev")


def state(checkout: Checkout) -> dict[str, Any]:
    file = checkout.home / STACK_STATE
    try:
        found: dict[str, Any] = json.loads(file.read_text())["checkpoint"]["latest"] or {}
    except (FileNotFoundError, ValueError):  # not completely written yet
        return {}
    return found


def under_way(checkout: Checkout, kind: str, operation: str = "creating") -> bool:
    pending = state(checkout).get("pending_operations") or []
    return any(kind in op["resource"]["type"] and op["type"] == operation for op in pending)


def installing(checkout: Checkout) -> bool:
    """A killed Helm leaves a release pending."""
    file = checkout.home / CLUSTER / "admin.kubeconfig"
    if not file.exists():
        return False
    try:
        with KubeClient.from_kubeconfig(file.read_text()) as kube:
            return bool(kube.list("v1", "Secret", labels="owner=helm,status=pending-install"))
    except (ApiError, httpx.HTTPError):  # the control plane is still starting
        return False


def held(checkout: Checkout, moment: Callable[[], bool]) -> bool:
    """Stops all client processes at a moment. Returns whether the moment holds after that."""
    if not moment():
        return False
    everything = clients(checkout.home)
    kill(everything, signal.SIGSTOP)
    if moment():
        return True
    kill(everything, signal.SIGCONT)
    return False


def interrupted(
    checkout: Checkout,
    target: str,
    moment: Callable[[], bool],
    what: str,
    while_stopped: Callable[[], object] = lambda: None,
) -> str:
    """Kills `make <target>` and its children, except the simulator, at a moment. Returns the output so far.

    `while_stopped` runs before the kill, while all client processes are stopped.
    """
    command = checkout.begin(target)
    try:
        eventually(lambda: held(checkout, moment) or command.poll() is not None, what)
        assert command.poll() is None, f"ended before {what}: {command.communicate()[0]}"
        while_stopped()
    finally:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
        while left := clients(checkout.home):
            kill(left)
    return command.communicate()[0]
