"""An HTTP proxy on 127.0.0.1 that routes Azure's names to simulated Azure, never to real Azure.

The user name in the proxy's URL is the client's virtual network. A client without a user name is outside all
networks. Hosts outside Azure are reached through the user's own proxy, if any.
"""

from __future__ import annotations

import socket
import socketserver

from simulator.azure import domains, inside
from simulator.azure.arm_world import World
from simulator.azure.https import Background
from simulator.azure.ids import ResourceId
from simulator.azure.inside import Reached, Unreached
from simulator.host import connect

PORT = "proxy"


class Gateway:
    """The proxy server. It runs until `stop`."""

    def __init__(self, port: int, world: World, arm: int, outer: str = "") -> None:
        """Starts the proxy. Port 0 takes a free port.

        `arm` is the port of Resource Manager, Graph and the login host. `outer` is the user's own proxy, or empty.
        """
        self.world, self.outer, self._arm = world, outer, arm
        self._origins: dict[int, ResourceId] = {}
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.gateway = self
        self.port: int = self._server.server_address[1]
        self._server.start("proxy")
        self.stop = self._server.stop

    def destination(self, port: int) -> ResourceId | None:
        """Returns the service that the proxy's connection from `port` reaches at a private address, else None."""
        return self._origins.get(port)

    def serve(self, client: socket.socket) -> None:
        """Serves one connection. Raises OSError if the client disconnects."""
        target = connect.read_request(client, forwards=True)
        if target is None:
            return
        try:
            reached = self._reach(target)
            upstream = self._dial(target, reached.service)
        except OSError as error:
            connect.refuse(client, " ".join(str(error).split()))
            return
        with upstream:
            own: int = upstream.getsockname()[1]
            if reached.private and reached.service:
                self._origins[own] = reached.service
            try:
                connect.join(client, upstream, target.plain)
            finally:
                self._origins.pop(own, None)

    def _dial(self, target: connect.Target, service: ResourceId | None) -> socket.socket:
        if service is None and target.host.lower() in domains.SERVED and target.port == inside.HTTPS:
            return connect.dial(self._arm)
        if service is None and domains.is_microsoft(target.host):
            raise Unreached(
                f"The simulator does not serve {target.host}, and its proxy blocks requests to Microsoft. "
                "Leave its environment to reach the real host"
            )
        if service is None:
            return connect.dial_outside((target.host, target.port), self.outer)
        return connect.dial(inside.served_at(self.world, service, target.port))

    def _reach(self, target: connect.Target) -> Reached:
        network = None
        if target.user:
            network = next(iter(inside.find(self.world.store.all(), target.user)), None)
            if network is None:
                raise Unreached(f"The virtual network {target.user} does not exist in simulated Azure")
        return inside.reach(self.world, target.host, target.port, network)


class _Server(Background, socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    gateway: Gateway


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            self.server.gateway.serve(self.request)
        except OSError:  # the client disconnected
            return
