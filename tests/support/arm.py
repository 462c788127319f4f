from __future__ import annotations

import functools
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import yaml

from simulator.azure import subscription, trust
from simulator.azure.blobs.changes import Changes
from simulator.azure.server import Server
from tests.support.sizes import H100

TOKEN = "a-token"
SUBSCRIPTION = subscription.load()
GROUP = f"/subscriptions/{SUBSCRIPTION.subscription_id}/resourceGroups/rg"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/aks"
TIMEOUT_S = 120
"""Operations take a second on an idle machine; Azurite's start may need this long."""
API = {
    "resourceGroups": "2024-03-01",
    "Microsoft.ContainerService": "2025-09-01",
    "Microsoft.Authorization": "2022-04-01",
    "Microsoft.ContainerRegistry": "2023-01-01-preview",
    "Microsoft.Storage": "2024-01-01",
    "Microsoft.Compute": "2024-11-01",
    "Microsoft.ManagedIdentity": "2023-01-31",
    "Microsoft.Network": "2024-05-01",
}
ZONES_API = "2024-06-01"
_TRUST = "azure-trust"


@dataclass
class FakeBackend:
    """`gate` blocks operations; `failure` makes them fail.

    The API server rejects nodes of the pool `refused`.
    """

    nodes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    storage: dict[str, dict[str, Any]] = field(default_factory=dict)
    admins: dict[str, list[str]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    rotated: list[str] = field(default_factory=list)
    api_ports: dict[str, int] = field(default_factory=dict)
    gate: threading.Event = field(default_factory=threading.Event)
    failure: str = ""
    refused: str = ""

    def __post_init__(self) -> None:
        self.gate.set()

    def create(self, cluster_id: str) -> None:
        self.gate.wait(TIMEOUT_S)
        if self.failure:
            raise RuntimeError(self.failure)
        self.nodes.setdefault(cluster_id, [])

    def delete(self, cluster_id: str) -> None:
        self.gate.wait(TIMEOUT_S)
        self.nodes.pop(cluster_id, None)
        self.deleted.append(cluster_id)

    def halt(self, cluster_id: str) -> None:
        self.halted.append(cluster_id)

    def rotate(self, cluster_id: str) -> None:
        self.rotated.append(cluster_id)

    def run(self, cluster_id: str, argv: Sequence[str], folder: Path, token: str) -> tuple[int, str]:
        return 0, f"{' '.join(argv)} {sorted(each.name for each in folder.iterdir())}"

    def admin_kubeconfig(self, cluster_id: str) -> str:
        return yaml.safe_dump(
            {
                "clusters": [
                    {"name": "x", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "Q0E="}}
                ],
                "users": [
                    {"name": "admin", "user": {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}}
                ],
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "admin"}}],
                "current-context": "x",
            }
        )

    def api_port(self, cluster_id: str) -> int:
        return self.api_ports[cluster_id]

    def set_storage(self, cluster_id: str, storage_profile: Mapping[str, Any]) -> None:
        self.storage[cluster_id] = dict(storage_profile)

    def set_admins(self, cluster_id: str, groups: Sequence[str]) -> None:
        self.admins[cluster_id] = list(groups)

    def set_nodes(self, cluster_id: str, nodes: list[dict[str, Any]]) -> dict[str, str]:
        names = [node["metadata"]["name"] for node in nodes]
        refused = {name: "is invalid" for name in names if self.refused and name.startswith(f"aks-{self.refused}-")}
        self.nodes[cluster_id] = [node for node in nodes if node["metadata"]["name"] not in refused]
        return refused


@dataclass
class FakeBlobs:
    """Storage accounts, and containers as `<account>/<container>`."""

    accounts: dict[str, list[str]] = field(default_factory=dict)
    containers: set[str] = field(default_factory=set)
    endpoint: str = "https://127.0.0.1:1"
    ca_file: Path = Path("ca.crt")
    changes: Changes = field(default_factory=Changes)

    def set_accounts(self, accounts: Callable[[], Mapping[str, list[str]]]) -> None:
        self.accounts = dict(accounts())

    def create_container(self, account: str, container: str) -> None:
        self.containers.add(f"{account}/{container}")

    def delete_container(self, account: str, container: str) -> None:
        self.containers.discard(f"{account}/{container}")

    def clear(self, account: str) -> None:
        self.containers = {name for name in self.containers if not name.startswith(f"{account}/")}


@dataclass
class Arm:
    server: Server
    backend: FakeBackend
    blobs: FakeBlobs
    client: httpx.Client
    ca_file: str

    def call(self, method: str, path: str, body: Any = None, **query: str) -> httpx.Response:
        if "api-version" not in query:
            provider, _, kind = path.rpartition("/providers/")[2].partition("/")
            zones = kind.startswith("privateDnsZones")  # these have other API versions than the rest of the provider
            query = {"api-version": ZONES_API if zones else API.get(provider, "2024-03-01")} | query
        return self.client.request(method, path, json=body, params=query)

    def put(self, path: str, body: Any) -> httpx.Response:
        return self.call("PUT", path, body)

    def assign(self, role: str, scope: str, principal: str, name: str = f"{1:032}", **properties: str) -> str:
        path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{UUID(name)}"
        answer = self.put(path, assignment_body(role, principal, **properties))
        assert answer.status_code in (200, 201), answer.text
        return path

    def get(self, path: str) -> dict[str, Any]:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def done(self) -> None:
        assert self.server.operations.wait(TIMEOUT_S)

    def stop(self) -> None:
        self.backend.gate.set()
        self.client.close()
        self.server.stop()
        self.server.operations.wait(TIMEOUT_S)

    def refusal(self, response: httpx.Response) -> tuple[int, str, str]:
        error = response.json()["error"]
        return response.status_code, error["code"], error["message"]

    def node_names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.backend.nodes[CLUSTER]]


def assignment_body(role: str, principal: str, **properties: str) -> dict[str, Any]:
    definition = f"/providers/Microsoft.Authorization/roleDefinitions/{role}"
    return {"properties": {"principalId": principal, "roleDefinitionId": definition, **properties}}


def cluster_body(**properties: Any) -> dict[str, Any]:
    pool = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D4ads_v5"}
    return {
        "location": "eastus",
        "identity": {"type": "SystemAssigned"},
        "properties": {"dnsPrefix": "dev", "agentPoolProfiles": [pool]} | properties,
    }


def pool_body(**properties: Any) -> dict[str, Any]:
    """Returns a pool of two H100 nodes like the program's, but with an OS disk for every VM size."""
    return {
        "properties": {
            "vmSize": H100,
            "count": 2,
            "mode": "User",
            "osDiskSizeGB": 128,
            "osDiskType": "Managed",
            "gpuProfile": {"driver": "None"},
            "nodeTaints": ["sku=gpu:NoSchedule"],
            "nodeLabels": {"ai-on-aks/gpu": "true"},
        }
        | properties
    }


def aks_id(path: str) -> str:
    """Returns an id as AKS spells it."""
    return path.replace("/resourceGroups/", "/resourcegroups/")


def pool_path(name: str = "gpu") -> str:
    return f"{CLUSTER}/agentPools/{name}"


def start(folder: Path, backend: FakeBackend, settings: subscription.Subscription = SUBSCRIPTION) -> Arm:
    _trust(folder.parent)
    blobs = FakeBlobs()
    server = Server(0, TOKEN, settings, backend, blobs, folder)
    server.start()
    return Arm(server, backend, blobs, client_of(server.endpoint, folder.parent), ca_file(folder.parent))


def _trust(home: Path) -> None:
    """Copies this process's certificates and keys, because each RSA key takes 70 ms."""
    folder = home / _TRUST
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, content in _made_once().items():
            (folder / name).write_bytes(content)


@functools.cache
def _made_once() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as home:
        trust.authority(Path(home))
        trust.token_key(Path(home))
        return {file.name: file.read_bytes() for file in Path(home, _TRUST).iterdir()}


def client_of(endpoint: str, home: Path, *, timeout: float = 30, secret: str = TOKEN) -> httpx.Client:
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.Client(base_url=endpoint, headers=headers, trust_env=False, timeout=timeout, verify=trust.client(home))


def ca_file(home: Path) -> str:
    return trust.authority(home).path("ca", "crt")
