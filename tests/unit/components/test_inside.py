from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components.access import inside
from components.preflight import arm
from simulator.host import certificates

PRIVATE = "ai.0a1b2c.privatelink.eastus.azmk8s.io"


class Server:
    """A proxy to the port `target` of this machine, which fails without one."""

    def __init__(self, status: int = 200, body: object = None, target: int | None = None) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.path} {self.headers.get('Metadata', '')}".strip())
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def do_CONNECT(self) -> None:
                asked.append(self.path)
                if target is None:
                    self.send_error(502, "no such host")
                    return
                self.send_response(200)
                self.end_headers()
                with socket.create_connection(("127.0.0.1", target)) as there:
                    threading.Thread(target=_copy, args=(self.connection, there), daemon=True).start()
                    _copy(there, self.connection)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def api_server(folder: Path, status: int = 401, body: object = None) -> Iterator[Server]:
    server = Server(status, body or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status})
    authority = certificates.Authority(folder, "api")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue("api", "api", hosts=("127.0.0.1",), server=True)
    context.load_cert_chain(authority.path("api", "crt"), authority.path("api", "key"))
    server.http.socket = context.wrap_socket(server.http.socket, server_side=True)
    with serving(server):
        yield server


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(("status", "body"), [(200, {"gitVersion": "v1.35.4"}), (401, None), (403, None), (503, None)])
def test_any_answer_of_kubernetes_means_inside(status: int, body: object, tmp_path: Path) -> None:
    with api_server(tmp_path, status, body) as api:
        assert inside.answers(f"127.0.0.1:{api.port}")
        assert api.asked == ["/version"]


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("status", "body"), [(200, "<html>sign in</html>"), (403, {"error": "blocked"}), (200, ["ok"])]
)
def test_other_answers_do_not_mean_inside(status: int, body: object, tmp_path: Path) -> None:
    with api_server(tmp_path, status, body) as portal:
        assert not inside.answers(f"127.0.0.1:{portal.port}")
        assert portal.asked


@pytest.mark.usefixtures("no_proxy")
def test_an_unknown_name_and_a_missing_answer_mean_outside() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert not inside.answers(f"127.0.0.1:{unused.getsockname()[1]}")
    assert not inside.answers("ai.privatelink.invalid")


@pytest.mark.usefixtures("no_proxy")
def test_uses_the_proxy_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(tmp_path) as api, serving(Server(target=api.port)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://vnet@127.0.0.1:{proxy.port}")
        assert inside.answers(PRIVATE)
        assert proxy.asked == [f"{PRIVATE}:443"]
        monkeypatch.setenv("NO_PROXY", PRIVATE)
        assert not inside.answers(PRIVATE)


@pytest.mark.usefixtures("no_proxy")
def test_an_error_of_the_proxy_means_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert not inside.answers(PRIVATE)
        assert proxy.asked == [f"{PRIVATE}:443"]


def interfaces(*addresses: str) -> list[dict[str, Any]]:
    """Returns the metadata service's format (MicrosoftDocs/azure-docs#44314)."""
    found = [{"privateIpAddress": address, "publicIpAddress": ""} for address in addresses]
    subnet = [{"address": "10.0.8.0", "prefix": "24"}]
    return [{"ipv4": {"ipAddress": found, "subnet": subnet}, "ipv6": {"ipAddress": []}, "macAddress": "000D3A328570"}]


@pytest.mark.parametrize(
    ("status", "body", "within"),
    [
        (200, interfaces("10.0.8.5"), True),
        (200, interfaces("192.168.0.4", "10.0.255.1"), True),
        (200, interfaces("10.1.0.4"), False),
        (200, interfaces(), False),
        (200, {"error": "Bad request"}, False),
        (200, [{"ipv4": None}], False),
        (400, None, False),
    ],
)
def test_compares_the_machines_azure_addresses_with_the_ranges(
    status: int, body: object, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Server(status, body)) as metadata:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{metadata.port}")
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        assert inside.is_in(["172.16.0.0/24", "10.0.0.0/16", "fd00::/64"]) is within
        assert metadata.asked == ["/metadata/instance/network/interface?api-version=2021-02-01 true"]


def test_trusts_the_machines_authorities_for_a_metadata_service_with_https(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulator serves it by HTTPS, Azure by plain HTTP."""
    with api_server(tmp_path, 200, interfaces("10.0.8.5")) as metadata:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"https://127.0.0.1:{metadata.port}")
        arm._trusted.cache_clear()
        assert not inside.is_in(["10.0.0.0/16"])
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
        arm._trusted.cache_clear()
        assert inside.is_in(["10.0.0.0/16"])
    arm._trusted.cache_clear()


def test_does_not_ask_the_metadata_service_without_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server(200, interfaces("10.0.8.5"))) as metadata:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"http://127.0.0.1:{metadata.port}")
        assert not inside.is_in([])
        assert metadata.asked == []
