"""The HTTPS server of all registries on 127.0.0.1. It simulates only network access, not tokens or layers.

A client first requests `/v2/`. Azure responds with 401 and the token endpoint. If the registry has no public access,
Azure rejects requests to the public address (docker/build-push-action#1214).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus

from simulator.azure import trust
from simulator.azure.arm_world import World
from simulator.azure.https import Handler, HttpsServer
from simulator.azure.ids import ResourceId
from simulator.azure.registries import DOMAIN
from simulator.azure.types.container_registry import rules as container_registries

Destination = Callable[[int], ResourceId | None]
"""Maps a client's port to the resource that the client reaches through a private endpoint (`gateway.py`)."""
_CLIENT = "203.0.113.1"
"""The client's address in the error text. The range is reserved for documentation (RFC 5737)."""


class RegistryFront(HttpsServer):
    """The server. It takes a free port, stores the port in `world.registries`, and runs until `stop`."""

    def __init__(self, world: World, destination: Destination) -> None:
        super().__init__(0, trust.authority(), _Handler, trust.REGISTRY)
        self.world, self.destination = world, destination
        world.registries.port = self.server_address[1]
        self.start("registries")


class _Handler(Handler):
    server: RegistryFront

    def _respond(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0].lower()
        registry = container_registries.named(self.server.world, host.removesuffix(DOMAIN))
        if registry is None:
            self._send(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN", f"The registry {host} does not exist in simulated Azure.")
        elif (
            not container_registries.is_public(registry)
            and self.server.destination(self.client_address[1]) != registry.id
        ):
            refusal = (
                f"client with IP '{_CLIENT}' is not allowed access. Refer https://aka.ms/acr/firewall to grant access."
            )
            self._send(HTTPStatus.FORBIDDEN, "DENIED", refusal)
        else:
            challenge = f'Bearer realm="https://{host}/oauth2/token",service="{host}"'
            needed = "authentication required, visit https://aka.ms/acr/authorization for more information."
            self._send(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED", needed, {"Www-Authenticate": challenge})

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _respond

    def _send(self, status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        content = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self.close_connection = True  # because the body was not read
        self.reply(status, (headers or {}).items(), content)
