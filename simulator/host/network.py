"""An HTTPS CONNECT proxy, through which the API server (egress selector) reaches addresses in the simulated cluster.

For a webhook, the API server dials a ready pod of its Service; for a kubelet, it dials the node. These addresses exist
only in the simulation. So charts keep their Services, and a webhook without a ready pod fails, as on AKS.
"""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Mapping

from simulator.host import connect
from simulator.host.certificates import Authority
from simulator.host.socks import SocksProxy


class ClusterNetwork:
    """Addresses in the simulated cluster, served by ports of 127.0.0.1 or separate networks."""

    def __init__(self, authority: Authority, port: int) -> None:
        self._routes: dict[tuple[str, int], int] = {}
        self._doors: dict[str, Callable[[int], socket.socket]] = {}
        self._pages: Mapping[tuple[str, int], Callable[[], socket.socket]] = {}
        self._lock = threading.Lock()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.path("ca", "crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(authority.path("kubelet", "crt"), authority.path("kubelet", "key"))
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.network, self._server.tls = self, context
        threading.Thread(target=self._server.serve_forever, name="cluster-network", daemon=True).start()
        self._socks = SocksProxy(self.dial)
        self.proxy = self._socks.url

    def route(self, address: str, port: int, local_port: int) -> None:
        with self._lock:
            self._routes[(address, port)] = local_port

    def open(self, address: str, door: Callable[[int], socket.socket]) -> None:
        """Opens all ports of an address. `door` connects to a port or raises OSError."""
        with self._lock:
            self._doors[address] = door

    def serve(self, pages: Mapping[tuple[str, int], Callable[[], socket.socket]]) -> None:
        """Replaces the ports that the simulator serves itself. Each has a function that connects to the port."""
        with self._lock:
            self._pages = dict(pages)

    def unroute(self, address: str) -> None:
        with self._lock:
            self._doors.pop(address, None)
            for key in [key for key in self._routes if key[0] == address]:
                del self._routes[key]

    def local_port(self, address: str, port: int) -> int | None:
        with self._lock:
            return self._routes.get((address, port))

    def dial(self, address: str, port: int) -> socket.socket | None:
        """Connects to an address. Returns None if nothing serves it. Raises OSError if the connection is refused."""
        if (local := self.local_port(address, port)) is not None:
            return connect.dial(local)
        with self._lock:
            page, door = self._pages.get((address, port)), self._doors.get(address)
        if page:
            return page()
        return door(port) if door else None

    def stop(self) -> None:
        self._socks.stop()
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    network: ClusterNetwork
    tls: ssl.SSLContext


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            with self.server.tls.wrap_socket(self.request, server_side=True) as client:
                self._connect(client)
        except (OSError, ssl.SSLError):  # the API server closed the connection
            return

    def _connect(self, client: ssl.SSLSocket) -> None:
        target = connect.read_request(client)
        if target is None:
            return
        try:
            upstream = self.server.network.dial(target.host, target.port)
        except OSError:
            connect.refuse(client, "Connection refused")
            return
        if upstream is None:
            connect.refuse(client, "Nothing serves this address in the simulated cluster")
            return
        with upstream:
            connect.join(client, upstream)
