"""Connects sandboxes, which have no network, to a few servers and to ports of pods.

Only simulated commands use it, through a Unix socket.
"""

from __future__ import annotations

import os
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path

from simulator.host import connect, files
from simulator.host.relay import relay

SOCKET = "uplink"
AUTHORITIES = "authorities.pem"
_TIMEOUT_S = 60
_MAX_REQUEST = 300

Address = tuple[str, int]


class Uplink:
    """The server. The Unix socket and the certificates of trusted CAs are in the folder of world.json.

    A client sends host and port in one line. The server answers `ok` and connects the client, or answers `refused`.
    """

    def __init__(
        self,
        folder: Path,
        allows: Callable[[Address], bool],
        authorities: str,
        proxy: Callable[[Address], str] = lambda _: "",
        pods: Callable[[str, int], socket.socket | None] = lambda *_: None,
    ) -> None:
        """`allows` selects servers for direct connections. `authorities` are trusted CAs (PEM).

        For other servers, `proxy` returns a proxy's URL, or an empty string. `pods` connects to addresses of the
        cluster, and returns None for unknown addresses.
        """
        folder.mkdir(parents=True, exist_ok=True)
        files.replace(folder / AUTHORITIES, authorities)
        (folder / SOCKET).unlink(missing_ok=True)
        self._server = _server(folder, allows, proxy, pods)
        self._thread = threading.Thread(target=self._server.serve_forever, name="uplink", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    allows: Callable[[Address], bool]
    proxy: Callable[[Address], str]
    pods: Callable[[str, int], socket.socket | None]

    def dial(self, address: Address) -> socket.socket:
        """Connects to an address. Raises OSError if this fails or is not allowed."""
        if self.allows(address):
            return socket.create_connection(address, _TIMEOUT_S)
        if by := self.proxy(address):
            return connect.by_proxy(address, by)
        if pod := self.pods(*address):
            return pod
        raise ConnectionRefusedError(address)


def _server(
    folder: Path,
    allows: Callable[[Address], bool],
    proxy: Callable[[Address], str],
    pods: Callable[[str, int], socket.socket | None],
) -> _Server:
    """Binds by a descriptor of the folder, because addresses of Unix sockets are limited to 107 bytes."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        server = _Server(f"/proc/self/fd/{descriptor}/{SOCKET}", _Client)
    finally:
        os.close(descriptor)
    server.allows, server.proxy, server.pods = allows, proxy, pods
    return server


class _Client(socketserver.StreamRequestHandler):
    rbufsize = 0  # data after the first line is for the server
    server: _Server

    def handle(self) -> None:
        host, _, port = self.rfile.readline(_MAX_REQUEST).decode("ascii", "replace").strip().rpartition(" ")
        address = (host, int(port) if port.isdigit() else 0)
        try:
            upstream = self.server.dial(address)
        except OSError:
            self.wfile.write(b"refused\n")
            return
        with upstream:
            self.wfile.write(b"ok\n")
            relay(self.request, upstream)
