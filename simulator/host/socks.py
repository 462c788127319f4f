"""A SOCKS5 proxy (RFC 1928) on 127.0.0.1 from this machine's processes to the simulated cluster.

Supports only CONNECT. It needs no login, because all users of this machine can reach the cluster anyway.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Callable

from simulator.host.relay import relay

Dial = Callable[[str, int], socket.socket | None]
"""Connects to an address and port. Returns None if nothing serves it. Raises OSError if the connection is refused."""
_VERSION, _CONNECT, _NO_LOGIN = 5, 1, 0
_IPV4, _NAME, _IPV6 = 1, 3, 4
_OK, _UNREACHABLE, _REFUSED, _NO_COMMAND = 0, 4, 5, 7


class SocksProxy:
    """The proxy, on a free port."""

    def __init__(self, dial: Dial) -> None:
        self._server = _Server(("127.0.0.1", 0), _Client)
        self._server.dial = dial
        self.url = f"socks5://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="socks", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    dial: Dial


class _Client(socketserver.StreamRequestHandler):
    rbufsize = 0  # no buffer: data after the request is for the server
    server: _Server

    def handle(self) -> None:
        try:
            self._serve()
        except (OSError, struct.error):  # the client closed the connection
            return

    def _serve(self) -> None:
        version, methods = struct.unpack("!BB", self.rfile.read(2))
        self.rfile.read(methods)
        if version != _VERSION:
            return
        self.wfile.write(bytes([_VERSION, _NO_LOGIN]))
        _, command, _, kind = struct.unpack("!BBBB", self.rfile.read(4))
        host = self._host(kind)
        (port,) = struct.unpack("!H", self.rfile.read(2))
        if command != _CONNECT:
            self._answer(_NO_COMMAND)
            return
        try:
            upstream = self.server.dial(host, port)
        except OSError:
            self._answer(_REFUSED)
            return
        if upstream is None:
            self._answer(_UNREACHABLE)
            return
        with upstream:
            self._answer(_OK)
            relay(self.request, upstream)

    def _host(self, kind: int) -> str:
        if kind == _NAME:
            return self.rfile.read(self.rfile.read(1)[0]).decode("ascii", "replace")
        family, size = (socket.AF_INET6, 16) if kind == _IPV6 else (socket.AF_INET, 4)
        return socket.inet_ntop(family, self.rfile.read(size))

    def _answer(self, code: int) -> None:
        self.wfile.write(bytes([_VERSION, code, 0, _IPV4]) + bytes(6))
