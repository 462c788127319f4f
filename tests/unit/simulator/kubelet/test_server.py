"""The kubelets' endpoint for logs, as the API server asks it: by HTTPS, with its client certificate."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from simulator.host import ports
from simulator.host.certificates import cluster_certificates
from simulator.host.network import ClusterNetwork
from simulator.kubelet import folders
from simulator.kubelet.access import PodAccess
from simulator.kubelet.logs import LogFile
from simulator.kubelet.server import KubeletServer
from tests.unit.simulator.kubelet.pods import make


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def api_server(cluster: Path) -> Iterator[httpx.Client]:
    """The API server's client of the kubelets of a cluster with one pod, whose container was started twice."""
    pod, port = make(), ports.free(set())
    for text in ("first", "second\nthird"):
        LogFile(folders.logs_of(cluster, pod) / "main").line(text)
    authority = cluster_certificates(cluster / "pki")
    access = PodAccess(cluster, cast(ClusterNetwork, None), lambda namespace, name: pod, lambda container: None)
    server = KubeletServer(authority, port, access)
    context = ssl.create_default_context(cafile=authority.path("ca", "crt"))
    context.load_cert_chain(authority.path("kubelet-client", "crt"), authority.path("kubelet-client", "key"))
    with httpx.Client(base_url=f"https://127.0.0.1:{port}/containerLogs/ai/train-0/", verify=context) as client:
        yield client
    server.stop()


@pytest.mark.parametrize(
    ("query", "shown"),
    [("", "second\nthird\n"), ("tailLines=1", "third\n"), ("limitBytes=3", "sec"), ("previous=true", "first\n")],
)
def test_a_log_and_its_parts(api_server: httpx.Client, query: str, shown: str) -> None:
    answer = api_server.get(f"main?{query}")
    assert (answer.status_code, answer.text) == (200, shown)


def test_a_container_that_was_never_started_again_has_no_previous_log(api_server: httpx.Client) -> None:
    answer = api_server.get("sidecar?previous=true")
    assert (answer.status_code, answer.text) == (
        400,
        'previous terminated container "sidecar" in pod "train-0" not found\n',
    )


def test_a_faked_container_says_so(api_server: httpx.Client) -> None:
    answer = api_server.get("sidecar")
    assert (answer.status_code, "KWOK fakes its pod" in answer.text) == (200, True)
