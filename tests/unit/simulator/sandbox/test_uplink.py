from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from simulator.host import connect
from simulator.sandbox.commands import curl
from simulator.sandbox.library import uplink_client
from simulator.sandbox.uplink import Uplink

POD = "10.244.0.4"
NAME = "models.blob.core.windows.net"


class _Proxy(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        target = connect.read_request(self.request)
        if target is None or target.host != NAME:
            connect.refuse(self.request, "dial tcp: no such host")
            return
        here, there = socket.socketpair()
        with here, there:
            threading.Thread(target=lambda: there.sendall(there.recv(16)), daemon=True).start()
            connect.join(self.request, here)


def _dial(address: str, port: int) -> socket.socket | None:
    if address != POD:
        return None
    if port != 80:
        raise ConnectionRefusedError
    here, there = socket.socketpair()
    threading.Thread(target=_echo, args=(there,), daemon=True).start()
    return here


def _echo(client: socket.socket) -> None:
    with client:
        client.sendall(client.recv(16))


@pytest.fixture(autouse=True)
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(uplink_client, "FOLDER", tmp_path)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Proxy) as proxy:
        proxy.daemon_threads = True
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_address[1]}"
        trusted = Path(certifi.where()).read_text()
        up = Uplink(
            tmp_path,
            lambda _: False,
            trusted,
            lambda address: url if address[0].endswith(".windows.net") else "",
            pods=_dial,
        )
        yield
        up.stop()
        proxy.shutdown()


def test_connects_to_a_name_through_the_proxy() -> None:
    with uplink_client.connect(NAME, 443, 10) as connection:
        connection.sendall(b"hello")
        assert connection.recv(16) == b"hello"


def test_connects_to_a_pod_by_its_address() -> None:
    with uplink_client.connect(POD, 80, 10) as connection:
        connection.sendall(b"hello")
        assert connection.recv(16) == b"hello"
    with pytest.raises(ConnectionRefusedError):
        uplink_client.connect(POD, 81, 10)


@pytest.mark.parametrize("host", ["gone.blob.core.windows.net", "pypi.org"])
def test_rejects_other_names(host: str) -> None:
    with pytest.raises(ConnectionRefusedError):
        uplink_client.connect(host, 443, 10)


def test_curl_has_the_real_error_for_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert curl.main(["-sS", "https://gone.blob.core.windows.net/data/x"]) == curl.UNRESOLVED
    assert capsys.readouterr().err == "curl: (6) Could not resolve host: gone.blob.core.windows.net\n"
