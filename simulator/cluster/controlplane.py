"""The control plane of one simulated AKS cluster: real etcd, API server, controller-manager, scheduler and KWOK."""

from __future__ import annotations

import functools
import json
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import yaml

from k8s.objects import Object
from simulator.cluster import entra
from simulator.host import files, paths, ports
from simulator.host.certificates import FRONT_PROXY, Authority, cluster_certificates
from simulator.host.processes import Process, Supervisor
from simulator.kube.client import ApiError, KubeClient
from simulator.world.azure_services import Entra

SERVICE_CIDR = "10.0.0.0/16"  # AKS's default
KWOK_POD_CIDR = "10.244.0.0/17"
_OWN_ISSUER = "https://kubernetes.default.svc"
_STAGES = Path(__file__).with_name("stages.yaml")
_READY_TIMEOUT_S = 120
_LEASE_SECONDS = 40


class NotReady(Exception):
    """A part of the control plane did not start. The message contains the end of the part's log."""


class ControlPlane:
    """Folder, ports, certificates and processes of one cluster. `stop` keeps the data."""

    def __init__(self, name: str, issuer: str = "", login: Entra | None = None, names: Sequence[str] = ()) -> None:
        """Creates the certificates. `names` are the API server's DNS names.

        `issuer` is the OIDC issuer of service account tokens, or empty. `login` is for Entra users.
        """
        self.name, self._names = name, names
        self._entra, self._issuer = login, issuer
        self.folder = paths.home() / "clusters" / name
        self.authority: Authority = cluster_certificates(self.folder / "pki", names)
        self.supervisor = Supervisor()

    def port(self, part: str) -> int:
        return ports.port(f"{self.name}.{part}")

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port('apiserver')}"

    def kubeconfig(self, user: str = "admin") -> str:
        return yaml.safe_dump(self.authority.kubeconfig(user, self.server, self.name), sort_keys=False)

    def for_users(self) -> Object:
        """Returns the administrator's kubeconfig, with the server name that AKS gives to users."""
        server = f"https://{self._names[0]}:443" if self._names else self.server
        return self.authority.kubeconfig("admin", server, self.name)

    @functools.cached_property
    def tls(self) -> ssl.SSLContext:
        """A TLS context that trusts this API server, for clients with a token."""
        return ssl.create_default_context(cadata=self.authority.pem)

    def client(self) -> KubeClient:
        return KubeClient.from_kubeconfig(self.kubeconfig())

    def start(self) -> None:
        """Starts the control plane and awaits the API server. Raises NotReady or ports.PortTaken."""
        for part in ("etcd", "etcd-peer", "apiserver"):
            ports.require_free(f"{self.name}.{part}")
        self._write_configuration()
        etcd = self._run("etcd", self._etcd_argv())
        self._await("etcd", self._etcd_healthy, etcd)
        self._apiserver = self._run("kube-apiserver", self._apiserver_argv())
        self._await("kube-apiserver", self._apiserver_ready, self._apiserver)
        self._run("kube-controller-manager", self._controller_manager_argv())
        self._run("kube-scheduler", self._scheduler_argv())
        self._run("kwok", self._kwok_argv())

    def set_access(self, issuer: str, login: Entra | None) -> None:
        """Restarts the API server if its issuer or login changes. Raises NotReady."""
        if (issuer, login) != (self._issuer, self._entra):
            self._issuer, self._entra = issuer, login
            self._apiserver.stop()
            self._apiserver.argv = [self._apiserver.argv[0], *self._apiserver_argv()]
            self._apiserver.start()
            self._await("kube-apiserver", self._apiserver_ready, self._apiserver)

    def stop(self) -> None:
        self.supervisor.stop()

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _run(self, tool: str, argv: list[str]) -> Process:
        process = Process(tool, [str(paths.tool(tool)), *argv], self.folder / "log" / f"{tool}.log")
        return self.supervisor.start(process)

    def _await(self, part: str, ready: Callable[[], bool], process: Process) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not ready():
            if time.monotonic() > deadline or process.restarts > 3:
                raise NotReady(
                    f"{part} of cluster {self.name} did not become ready. The end of its log:\n{process.tail()}"
                )
            time.sleep(0.1)

    def _etcd_healthy(self) -> bool:
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port('etcd')}/health", timeout=2, trust_env=False)
        except httpx.HTTPError:
            return False
        return bool(answer.json().get("health") == "true")

    def _apiserver_ready(self) -> bool:
        try:
            with self.client() as client:
                return client.text("/readyz") == "ok"
        except (httpx.HTTPError, ApiError):
            return False

    def _write_configuration(self) -> None:
        for user in ("admin", "controller-manager", "scheduler"):
            files.replace(self.folder / f"{user}.kubeconfig", self.kubeconfig(user))
        pki = self.authority.path
        tls = {
            "caBundle": pki("ca", "crt"),
            "clientCert": pki("kubelet-client", "crt"),
            "clientKey": pki("kubelet-client", "key"),
        }
        proxy = {"tcp": {"url": f"https://127.0.0.1:{self.port('egress')}", "tlsConfig": tls}}
        egress = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [
                {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": proxy}}
            ],
        }
        files.replace(self.folder / "egress.json", json.dumps(egress))

    def _etcd_argv(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{self.port(part)}" for part in ("etcd", "etcd-peer"))
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # data must survive crashes of processes, but not of the machine
            "--log-level=warn",
        ]

    def _apiserver_argv(self) -> list[str]:
        pki = self.authority.path
        return [
            f"--etcd-servers=http://127.0.0.1:{self.port('etcd')}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # other types reject loopback addresses
            f"--secure-port={self.port('apiserver')}",
            f"--tls-cert-file={pki('apiserver', 'crt')}",
            f"--tls-private-key-file={pki('apiserver', 'key')}",
            f"--client-ca-file={pki('ca', 'crt')}",
            *entra.flags(self._entra, self.folder),
            "--allow-privileged=true",
            f"--service-cluster-ip-range={SERVICE_CIDR}",
            *([f"--service-account-issuer={self._issuer}"] if self._issuer else []),  # tokens have the first issuer
            f"--service-account-issuer={_OWN_ISSUER}",
            f"--service-account-key-file={pki('sa', 'pub')}",
            f"--service-account-signing-key-file={pki('sa', 'key')}",
            f"--kubelet-client-certificate={pki('kubelet-client', 'crt')}",
            f"--kubelet-client-key={pki('kubelet-client', 'key')}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--egress-selector-config-file={self.folder / 'egress.json'}",
            "--enable-aggregator-routing=true",  # webhook requests go to ready endpoints, which the egress proxy maps
            # Pods that serve APIs accept user headers only from a client with this certificate.
            f"--proxy-client-cert-file={pki('front-proxy', 'crt')}",
            f"--proxy-client-key-file={pki('front-proxy', 'key')}",
            f"--requestheader-client-ca-file={pki('ca', 'crt')}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def _controller_manager_argv(self) -> list[str]:
        pki = self.authority.path
        return [
            f"--kubeconfig={self.folder / 'controller-manager.kubeconfig'}",
            f"--root-ca-file={pki('ca', 'crt')}",
            f"--service-account-private-key-file={pki('sa', 'key')}",
            "--use-service-account-credentials=true",
            f"--cluster-signing-cert-file={pki('ca', 'crt')}",
            f"--cluster-signing-key-file={pki('ca', 'key')}",
            "--controllers=*,-node-ipam-controller,-node-route-controller,-cloud-node-lifecycle-controller",
            "--node-monitor-grace-period=2m",  # on a loaded machine, lease renewals are late
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _scheduler_argv(self) -> list[str]:
        return [f"--kubeconfig={self.folder / 'scheduler.kubeconfig'}", "--leader-elect=false", "--secure-port=0"]

    def _kwok_argv(self) -> list[str]:
        return [
            f"--kubeconfig={self.folder / 'admin.kubeconfig'}",
            f"--config={_STAGES}",
            "--manage-all-nodes=true",
            f"--cidr={KWOK_POD_CIDR}",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        ]
