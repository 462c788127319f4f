"""An HTTP proxy on 127.0.0.1, by which names of simulated Azure are reached, and no real Azure in their place.

Whoever is inside a virtual network names it by the user of the proxy's URL; without one he is outside of all. Names
that are not Azure's are reached as this machine reaches them.
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
    """Serves until stopped."""

    def __init__(self, port: int, world: World, arm: int, outer: str = "") -> None:
        """Starts to serve.

        Args:
            port: The port to listen at; 0 takes a free one.
            world: Simulated Azure.
            arm: The port of simulated Resource Manager, which serves Microsoft Graph and the login host too.
            outer: The URL of the user's own proxy, empty without one.
        """
        self.world, self.outer, self._arm = world, outer, arm
        self._origins: dict[int, ResourceId] = {}
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.gateway = self
        self.port: int = self._server.server_address[1]
        self._server.start("proxy")
        self.stop = self._server.stop

    def came_to(self, port: int) -> ResourceId | None:
        """The service at whose private endpoint a client is, by the client's port; None for one that came otherwise."""
        return self._origins.get(port)

    def serve(self, client: socket.socket) -> None:
        """One connection. Raises OSError when the client hangs up."""
        wanted = connect.asked(client, forwards=True)
        if wanted is None:
            return
        try:
            reached = self._reach(wanted)
            upstream = self._dial(wanted, reached.service)
        except OSError as error:
            connect.refuse(client, " ".join(str(error).split()))
            return
        with upstream:
            own: int = upstream.getsockname()[1]
            if reached.private and reached.service:
                self._origins[own] = reached.service
            try:
                connect.join(client, upstream, wanted.plain)
            finally:
                self._origins.pop(own, None)

    def _dial(self, wanted: connect.Wanted, service: ResourceId | None) -> socket.socket:
        if service is None and wanted.host.lower() in domains.SERVED and wanted.port == inside.HTTPS:
            return connect.dial(self._arm)
        if service is None and domains.is_microsoft(wanted.host):
            raise Unreached(
                f"The simulator does not serve {wanted.host}, and its proxy does not let requests to Microsoft out. "
                "Leave its environment to reach the real host"
            )
        if service is None:
            return connect.dial_outside((wanted.host, wanted.port), self.outer)
        return connect.dial(inside.served_at(self.world, service, wanted.port))

    def _reach(self, wanted: connect.Wanted) -> Reached:
        network = None
        if wanted.user:
            network = next(iter(inside.find(self.world.store.all(), wanted.user)), None)
            if network is None:
                raise Unreached(f"There is no virtual network {wanted.user} in simulated Azure")
        return inside.reach(self.world, wanted.host, wanted.port, network)


class _Server(Background, socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    gateway: Gateway


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            self.server.gateway.serve(self.request)
        except OSError:  # the client hung up: nobody is left to tell
            return
