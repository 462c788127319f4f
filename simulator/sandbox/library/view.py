"""The simulated cluster, which simulated commands read from /run/simulator."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

FOLDER = Path("/run/simulator")
APPEARANCE_SECONDS = 60
LOOPBACK = ("localhost", "127.0.0.1")
SERVICE_SUFFIXES = ("", ".{}", ".{}.svc", ".{}.svc.cluster.local")

Json = dict[str, Any]


@dataclass(frozen=True)
class Pod:
    """A pod of world.json. `key` is "namespace/name"."""

    key: str
    facts: Mapping[str, Any]

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def hostname(self) -> str:
        return str(self.facts["hostname"])

    @property
    def node(self) -> str:
        return str(self.facts["node"])

    @property
    def ip(self) -> str:
        return str(self.facts["ip"])

    @property
    def running(self) -> bool:
        return bool(self.facts["phase"] == "Running")

    @property
    def ended(self) -> bool:
        return self.facts["phase"] in ("Succeeded", "Failed")

    @property
    def sshd(self) -> Json | None:
        return self.published("sshd")

    @property
    def nccl_files(self) -> Json:
        """The container's NCCL files and settings, as its ssh server or torchrun published them."""
        return self.published("sshd") or self.published("torchrun") or {}

    def published(self, name: str) -> Json | None:
        """Returns the document that the pod published under this name (`publish`), or None."""
        return (self.facts.get("state") or {}).get(name)

    @property
    def may_pin_memory(self) -> bool:
        return bool(self.facts.get("privileged")) or "IPC_LOCK" in self.facts["capabilities"]

    @property
    def names(self) -> set[str]:
        """The pod's address and, by headless Services, its DNS names within its namespace. Empty if the pod ended."""
        return self._names(SERVICE_SUFFIXES)

    @property
    def names_elsewhere(self) -> set[str]:
        """The pod's names in other namespaces."""
        return self._names(SERVICE_SUFFIXES[1:])

    def _names(self, suffixes: tuple[str, ...]) -> set[str]:
        if not self.ip or self.ended:
            return set()
        short = [f"{self.hostname}.{self.facts['subdomain']}"] if self.facts["subdomain"] else []
        records = [*short, *self.facts.get("services", ())]
        return {self.ip, *(record + suffix.format(self.namespace) for record in records for suffix in suffixes)}


@dataclass(frozen=True)
class View:
    """All nodes and pods, and this command's pod."""

    nodes: Mapping[str, Json]
    pods: Mapping[str, Pod]
    me: Pod

    def resolve(self, host: str) -> Pod | None:
        """Returns the pod with this name or address, or None if no pod has it."""
        if host in (self.me.hostname, *LOOPBACK):
            return self.me
        same = [pod for pod in self.pods.values() if pod.namespace == self.me.namespace]
        others = (pod for pod in self.pods.values() if pod.namespace != self.me.namespace)
        found = (pod for pod in same if host in pod.names)
        return next(found, None) or next((pod for pod in others if host in pod.names_elsewhere), None)

    def node_of(self, pod: Pod) -> Json:
        return self.nodes.get(pod.node, {"sku": "", "ready": False, "cpus": 1, "gpus": [], "hcas": []})

    def gpus_of(self, pod: Pod) -> list[Json]:
        """Returns the pod's GPUs in PCI order, which is CUDA's."""
        held = set(pod.facts["gpus"])
        return [gpu for gpu in self.node_of(pod)["gpus"] if gpu["index"] in held]

    def hcas_of(self, pod: Pod) -> list[Json]:
        """Returns the HCAs that the pod can open: all if it is privileged, otherwise the HCAs allocated to it."""
        held = set(pod.facts["hcas"])
        return [hca for hca in self.node_of(pod)["hcas"] if pod.facts.get("privileged") or hca["name"] in held]


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def load_self() -> Json:
    found: Json = json.loads((FOLDER / "self.json").read_text())
    return found


def load() -> View:
    """Reads world.json. Waits until it contains this pod, which may be new. Raises TimeoutError."""
    itself = load_self()
    own = itself["pod"]
    file = FOLDER / "world" / "world.json"
    deadline = time.monotonic() + APPEARANCE_SECONDS
    while time.monotonic() < deadline:
        snapshot = json.loads(file.read_text()) if file.exists() else {"pods": {}}
        if snapshot["pods"].get(own, {}).get("uid") == itself["uid"]:
            pods = {key: Pod(key, facts) for key, facts in snapshot["pods"].items()}
            return View(snapshot["nodes"], pods, pods[own])
        time.sleep(0.1)
    raise TimeoutError(f"simulator: pod {own} is not in the simulated world. Check the simulator: make status")


def publish(name: str, document: Json) -> None:
    """Publishes or replaces a document of this pod. Soon after, all pods see the document in world.json."""
    target = FOLDER / "pod" / f"{name}.json"
    unfinished = target.with_suffix(".new")
    unfinished.write_text(json.dumps(document))
    unfinished.replace(target)


def hold(name: str) -> TextIO:
    """Locks the published document of a daemon, and returns its file.

    When all processes have closed the file, the document expires (`STANDING` of simulator/world/snapshot.py).
    """
    file = (FOLDER / "pod" / f"{name}.json").open()
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def numbers() -> Json:
    """Returns performance data (`simulator/world/performance.py`)."""
    found: Json = json.loads((FOLDER / "performance.json").read_text())
    return found


def program(name: str) -> Json:
    found: Json = json.loads((FOLDER / "programs.json").read_text())[name]
    return found
