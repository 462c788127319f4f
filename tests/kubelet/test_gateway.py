"""Sandboxed pods reach storage accounts by a socket, and nothing else."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest

from simulator.cluster.certificates import Authority
from simulator.kubelet.gateway import SOCKET, Gateway


@dataclass(frozen=True)
class Blobs:
    """Implements Cloud: the account `olmodata` is served by a server that echoes what it was asked."""

    url: str
    ca_file: Path

    def blob_service(self, account: str) -> Blobs | None:
        return self if account == "olmodata" else None

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        return None


class Echo(http.server.BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("x-ms-request-id", "7")
        self.end_headers()
        self.wfile.write(f"{self.path} {self.headers['x-ms-blob-type']} {body.decode()}".encode())

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4096")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a gateway's socket is, deeper than a socket's path may be long."""
    authority = Authority(tmp_path / "pki", "test")
    authority.issue("blob", "blob", hosts=("127.0.0.1",), server=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.path("blob", "crt"), authority.path("blob", "key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    deep = tmp_path / ("x" * 120) / "world"
    blobs = Blobs(f"https://127.0.0.1:{server.server_port}/olmodata", Path(authority.path("ca", "crt")))
    gateway = Gateway(blobs, deep)
    yield deep
    gateway.stop()
    server.shutdown()
    server.server_close()


class Pod(http.client.HTTPConnection):
    """What a command in a sandbox does; there the folder has a short path."""

    def __init__(self, folder: Path, host: str) -> None:
        super().__init__(host)
        self._folder = folder

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        short = Path("/tmp") / f"gateway-{id(self)}"
        short.symlink_to(self._folder)
        try:
            self.sock.connect(str(short / SOCKET))
        finally:
            short.unlink()


def ask(folder: Path, host: str, method: str, path: str, body: str = "") -> tuple[int, Message, str]:
    """Status, headers and content of the answer."""
    with contextlib.closing(Pod(folder, host)) as connection:
        connection.request(method, path, body, {"x-ms-blob-type": "BlockBlob"})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()


def test_a_request_reaches_the_account_and_its_answer_comes_back(folder: Path) -> None:
    path = "/data/part-0?sp=rcwl&sig=x"
    status, headers, content = ask(folder, "olmodata.blob.core.windows.net", "PUT", path, "tokens")
    assert status == 201
    assert headers["x-ms-request-id"] == "7"
    assert content == f"/olmodata{path} BlockBlob tokens"


def test_a_head_tells_the_blobs_size(folder: Path) -> None:
    _, headers, _ = ask(folder, "olmodata.blob.core.windows.net", "HEAD", "/data/part-0")
    assert headers["Content-Length"] == "4096"


@pytest.mark.parametrize(
    "host", ["elsewhere.blob.core.windows.net", "example.com", "127.0.0.1:22", "olmodata.blob.core.windows.net.x.org"]
)
def test_nothing_else_answers(folder: Path, host: str) -> None:
    status, _, content = ask(folder, host, "GET", "/")
    assert (status, content) == (502, f"Could not resolve host: {host}\n")
