"""The session of a configured provider."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from simulator.kube.client import ApiError, KubeClient, NoKindMatch
from simulator.plugins.errors import PluginError
from simulator.plugins.kubernetes import exec_credentials, kubeconfig
from simulator.plugins.kubernetes.engine import Engine
from simulator.plugins.kubernetes.kinds import Kind
from simulator.plugins.kubernetes.options import Options


class Cancelled(Exception):
    """The engine cancelled the operation."""


@dataclass
class Session:
    """A provider's settings and client. `retry_unit` is in seconds.

    `client` is None if the cluster is unreachable, and `unreachable` is then the reason.
    """

    engine: Engine
    options: Options = field(default_factory=Options)
    client: KubeClient | None = None
    config: kubeconfig.Config = field(default_factory=dict)
    unreachable: str = "the provider has not been configured"
    namespace: str = "default"
    retry_unit: float = 1.0
    cancelled: threading.Event = field(default_factory=threading.Event)
    crd_scopes: dict[tuple[str, str], bool] = field(default_factory=dict)
    charts: list[Callable[[], list[dict[str, Any]]]] = field(default_factory=list)
    """Functions that render the CRDs of the program's charts. They are slow, so they run only for an unknown kind."""
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    @property
    def kube(self) -> KubeClient:
        """The client of the API server. Raises PluginError if the server is unreachable."""
        if self.client is None:
            raise PluginError(f"configured Kubernetes cluster is unreachable: {self.unreachable}")
        return self.client

    def require_cluster(self) -> None:
        _ = self.kube

    def configure(self, options: Options) -> None:
        """Connects to the cluster. If the kubeconfig or the cluster is unusable, only operations that need it fail."""
        self.options = options
        try:
            self.config = kubeconfig.select(kubeconfig.load(options.kubeconfig), options.context, options.cluster)
        except kubeconfig.KubeconfigError as error:
            self.unreachable = f"failed to parse kubeconfig data in `kubernetes:config:kubeconfig`- {error}"
            return
        self.namespace = options.namespace or kubeconfig.namespace(self.config)
        self._connect()

    def _connect(self) -> None:
        try:
            client = KubeClient.from_kubeconfig(exec_credentials.resolve(self.config))
        except (OSError, KeyError, ValueError) as error:  # a KubeconfigError is a ValueError
            self.unreachable = f"unable to load Kubernetes client configuration from kubeconfig file: {error}"
            return
        try:
            client.raw("GET", "/api")
        except (httpx.HTTPError, ApiError) as error:
            client.close()
            self.unreachable = f"unable to load schema information from the API server: {describe(error)}"
        else:
            self.client, self.unreachable = client, ""

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    def namespaced(self, kind: Kind) -> bool:
        """Returns whether the kind is namespaced. Returns True for an unknown kind."""
        try:
            return self.kube.resource(kind.api_version, kind.name).namespaced
        except (NoKindMatch, PluginError):
            with self._rendering:
                while self.charts:
                    for crd in self.charts.pop()():
                        self.remember_crd(crd)
            return self.crd_scopes.get((kind.group, kind.name), True)

    def exists(self, kind: Kind) -> bool:
        try:
            self.kube.resource(kind.api_version, kind.name)
        except (NoKindMatch, PluginError):
            return False
        return True

    def remember_crd(self, crd: dict[str, Any]) -> None:
        spec = crd.get("spec", {})
        names = spec.get("names", {})
        self.crd_scopes[(spec.get("group", ""), names.get("kind", ""))] = spec.get("scope") == "Namespaced"

    def sleep(self, seconds: float) -> None:
        """Sleeps. Raises Cancelled as soon as the engine cancels."""
        if self.cancelled.wait(seconds):
            raise Cancelled


def connected(config: kubeconfig.Config) -> Session:
    """Creates a session for work outside a deployment. Raises the errors of `KubeClient.from_kubeconfig`."""
    return Session(Engine(), client=KubeClient.from_kubeconfig(config), config=config, unreachable="")


def describe(error: Exception) -> str:
    """Returns the error's message with the address, which httpx omits."""
    if isinstance(error, httpx.RequestError):
        return f'{error.request.method} "{error.request.url}": {error}'
    return str(error)
