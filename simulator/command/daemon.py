"""The daemon, with simulated Azure and its clusters in one process. `python -m simulator start` starts it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from k8s.objects import Object
from simulator.azure import gateway as gateways
from simulator.azure import subscription
from simulator.azure.autoscaler.loop import Autoscaler
from simulator.azure.blobs.policy import Policy
from simulator.azure.blobs.service import BlobService
from simulator.azure.data_plane import DataPlane
from simulator.azure.gateway import Gateway
from simulator.azure.registry_front import RegistryFront
from simulator.azure.server import Server
from simulator.azure.spot import Evictor
from simulator.azure.store import BadRecords, Store
from simulator.azure.tokens import AKS
from simulator.azure.types.agent_pool.life import stopped
from simulator.azure.types.managed_cluster import credentials
from simulator.azure.types.managed_cluster.rules import TYPE as CLUSTERS
from simulator.cluster.clusters import Clusters
from simulator.cluster.controlplane import ControlPlane, NotReady
from simulator.command.daemon_state import code, hold_lock, state_file
from simulator.command.environment import kubeconfig_file, outer_proxy, token_file
from simulator.host import files, paths, ports
from simulator.host.processes import end_leftovers
from simulator.operators import PROGRAMS
from simulator.operators.device_plugins import extended_resources
from simulator.world.evictions import EvictionStore

ALREADY_RUNNING = 3
_RESUME_TIMEOUT_S = 150
_WEBHOOKS_TIMEOUT_S = 20


class NotResumed(Exception):
    """Operations of an earlier daemon did not finish in time."""


class KubeconfigFile:
    """Writes `.simulator/kubeconfig` for kubectl in `make shell`, with a context for each running cluster.

    A private cluster's server has the DNS name that AKS gives to users. If local accounts are disabled, kubectl
    authenticates with kubelogin as the user of `az login`.
    """

    def __init__(self, clusters: Clusters, store: Store) -> None:
        self._clusters, self._store = clusters, store
        self._written: dict[str, tuple[ControlPlane, bool]] = {}

    def write(self) -> None:
        """Writes the file if clusters changed. Keeps the user's current context."""
        records = self._store.all(CLUSTERS)
        closed = {paths.cluster(record.id.text).name for record in records if credentials.no_local_accounts(record)}
        halted = {paths.cluster(record.id.text).name for record in records if stopped(record)}
        ways = {name: way for name, way in self._written.items() if name in halted}  # contexts of stopped clusters stay
        ways |= {name: (running.plane, name in closed) for name, running in self._clusters.all().items()}
        file = kubeconfig_file()
        if not ways and not halted:
            file.unlink(missing_ok=True)
        elif ways != self._written:
            configs = {name: plane.for_users() for name, (plane, _) in ways.items()}
            for name in closed & configs.keys():
                configs[name]["users"][0]["user"] = {"exec": credentials.plugin("azurecli", {"server-id": AKS})}
            files.replace(file, yaml.safe_dump(merged(configs, _chosen_context(file)), sort_keys=False))
        self._written = ways


def merged(configs: dict[str, Object], chosen: str | None) -> Object:
    """Returns a kubeconfig with a context per cluster. The current context is `chosen` if it exists, else the first."""
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
    known = {"pid": os.getpid(), "code": code()}
    files.replace(state_file(), json.dumps(known | {"ready": False}))
    end_leftovers()
    try:
        with contextlib.ExitStack() as parts:
            _run(parts, stop, known)
    except (BadRecords, NotReady, NotResumed, ports.PortTaken, FileNotFoundError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        end_leftovers()
        state_file().unlink(missing_ok=True)
        lock.close()
    return 0


def _run(parts: contextlib.ExitStack, stop: threading.Event, known: dict[str, object]) -> None:
    """Runs until `stop` is set. `parts` stops what this starts. `known` is written to the state file."""
    clusters, server = _simulated_azure(parts)
    _resume(server, clusters)
    azure = server.world, server.operations, clusters.client
    parts.callback(Autoscaler(*azure).stop)
    parts.callback(Evictor(*azure, EvictionStore()).stop)
    kubeconfig = KubeconfigFile(clusters, server.world.store)
    kubeconfig.write()
    files.replace(state_file(), json.dumps(known | {"ready": True, "port": ports.port("arm")}))
    while not stop.wait(1):
        kubeconfig.write()


def _simulated_azure(parts: contextlib.ExitStack) -> tuple[Clusters, Server]:
    """Creates clusters and Azure, which does not answer yet. Blobs stop last, because ending clusters write them."""
    clusters, blobs = Clusters(PROGRAMS, extended_resources), BlobService()
    parts.callback(blobs.stop)
    server = Server(ports.require_free("arm"), token_file().read_text().strip(), subscription.load(), clusters, blobs)
    gateway = Gateway(ports.require_free(gateways.PORT), server.world, server.port, outer_proxy())
    for part in (gateway, RegistryFront(server.world, gateway.destination), clusters, server):
        parts.callback(part.stop)
    clusters.cloud = DataPlane(server.world, server.tokens, gateway.port)
    blobs.open(Policy(server.world, server.tokens, gateway.destination).refusal)
    return clusters, server


def _resume(server: Server, clusters: Clusters) -> None:
    made = [record.id.text for record in server.world.store.all(CLUSTERS) if not record.busy and not stopped(record)]
    with ThreadPoolExecutor() as boots:
        list(boots.map(clusters.create, made))
    server.start()
    if not server.operations.wait(_RESUME_TIMEOUT_S):
        busy = ", ".join(record.id.text for record in server.world.store.all() if record.busy)
        raise NotResumed(f"Interrupted operations did not end in {_RESUME_TIMEOUT_S} s: {busy or 'on nodes'}.")
    with ThreadPoolExecutor() as waits:
        list(waits.map(lambda running: running.await_webhooks(_WEBHOOKS_TIMEOUT_S), clusters.all().values()))


if __name__ == "__main__":
    sys.exit(main())
