"""The simulator's one process: simulated Azure and the clusters that it runs. `python -m simulator start` starts it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import IO, Any

import yaml

from simulator import files, paths, ports
from simulator.azure import subscription
from simulator.azure.blobs.policy import Policy
from simulator.azure.blobs.service import BlobService
from simulator.azure.data_plane import DataPlane
from simulator.azure.server import Server, serve
from simulator.cluster.clusters import Clusters
from simulator.cluster.controlplane import NotReady
from simulator.cluster.processes import end_leftovers
from simulator.environment import kubeconfig_file, token_file
from simulator.kubelet import volcano
from simulator.operators import PROGRAMS

Object = dict[str, Any]
ALREADY_RUNNING = 3
_BOOT_TIMEOUT_S = 150


def lock_file() -> Path:
    return paths.home() / "daemon.lock"


def state_file() -> Path:
    return paths.home() / "daemon.json"


def hold_lock() -> IO[str] | None:
    """The lock that a running daemon holds; None while another process holds it."""
    lock_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = lock_file().open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def running_state() -> dict[str, object] | None:
    """What the running daemon says of itself (`pid`, `ready`); None when none runs."""
    held = hold_lock()
    if held is not None:
        held.close()
        return None
    try:
        state: dict[str, object] = json.loads(state_file().read_text())
    except FileNotFoundError:  # it has only just begun
        return {"ready": False}
    if not Path(f"/proc/{state['pid']}").exists():  # a killed daemon left it; the one that has the lock now begins
        return {"ready": False}
    return state


class KubeconfigFile:
    """Keeps `.simulator/kubeconfig` at the clusters that run, one context each, for kubectl in `make shell`."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._written: dict[str, Object] = {}

    def write(self) -> None:
        """Only when clusters came or went, so that a context that somebody chose stays chosen."""
        configs = {name: yaml.safe_load(running.plane.kubeconfig()) for name, running in self._clusters.all().items()}
        file = kubeconfig_file()
        if not configs:
            file.unlink(missing_ok=True)
        elif configs != self._written:
            files.replace(file, yaml.safe_dump(merged(configs, _chosen_context(file)), sort_keys=False))
        self._written = configs


def merged(configs: dict[str, Object], chosen: str | None) -> Object:
    """One kubeconfig with a context per cluster, called as the cluster; `chosen` stays current while it is there."""
    users = [{"name": name, "user": config["users"][0]["user"]} for name, config in configs.items()]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [config["clusters"][0] for config in configs.values()],
        "users": users,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in configs],
        "current-context": chosen if chosen in configs else next(iter(configs)),
    }


def _chosen_context(file: Path) -> str | None:
    return (yaml.safe_load(file.read_text()) or {}).get("current-context") if file.exists() else None


def main() -> int:
    lock = hold_lock()
    if lock is None:
        return ALREADY_RUNNING
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    files.replace(state_file(), json.dumps({"pid": os.getpid(), "ready": False}))
    end_leftovers()
    clusters, blobs = Clusters((*volcano.PROGRAMS, *PROGRAMS)), BlobService()
    server: Server | None = None
    try:
        server = _serve(clusters, blobs)
        kubeconfig = KubeconfigFile(clusters)
        kubeconfig.write()
        files.replace(state_file(), json.dumps({"pid": os.getpid(), "ready": True, "port": ports.port("arm")}))
        while not stop.wait(1):
            kubeconfig.write()
    except (NotReady, ports.PortTaken, FileNotFoundError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        if server is not None:
            server.stop()
        clusters.stop()
        blobs.stop()
        end_leftovers()
        state_file().unlink(missing_ok=True)
        lock.close()
    return 0


def _serve(clusters: Clusters, blobs: BlobService) -> Server:
    """Simulated Azure, with the clusters that it had before running again."""
    server = serve(ports.require_free("arm"), token_file().read_text().strip(), subscription.load(), clusters, blobs)
    clusters.cloud = DataPlane(server.world)
    blobs.open(Policy(server.world, server.tokens).refusal)
    server.start()
    server.wait_idle(_BOOT_TIMEOUT_S)
    return server


if __name__ == "__main__":
    sys.exit(main())
