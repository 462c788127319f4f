"""HTTP in front of the simulated Resource Manager: 127.0.0.1 only, and only with the bearer token.

The same server has the endpoint from which the Azure SDK takes its tokens, and says where the Resource Manager is.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from simulator.azure import managed_identity, metadata
from simulator.azure.api import Api, Request, Response
from simulator.azure.backend import BlobBackend, ClusterBackend
from simulator.azure.errors import ArmError
from simulator.azure.operations import Operations
from simulator.azure.registries import Registries
from simulator.azure.store import Store
from simulator.azure.subscription import Subscription
from simulator.azure.tokens import Tokens
from simulator.azure.world import World
from simulator.host import paths
from simulator.world.faults import FaultStore

_log = logging.getLogger(__name__)
_POLL_S = 0.05  # how soon a stop is noticed


class Server:
    """The simulated Azure. `start` returns at once; clusters that the store holds boot in the background."""

    def __init__(
        self,
        port: int,
        token: str,
        subscription: Subscription,
        backend: ClusterBackend,
        blobs: BlobBackend,
        folder: Path,
    ) -> None:
        registries, faults = Registries(folder.parent / "registries"), FaultStore(folder.parent)
        self.world = World(Store(folder), subscription, backend, blobs, registries, faults)
        self.operations = Operations(self.world)
        self.tokens = Tokens(token, subscription)
        self._http = _Http(port, self.tokens)
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"
        self._http.api = Api(self.world, self.operations, self.endpoint)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(_POLL_S,), name="arm-http", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.operations.resume()

    def wait_idle(self, timeout: float) -> bool:
        """Whether all operations (the boot of stored clusters too) ended within this many seconds."""
        return self.operations.wait(timeout)

    def stop(self) -> None:
        """Answers nothing more; clusters and the blob service are their backends' to stop."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        self.operations.stop()


def serve(
    port: int,
    token: str,
    subscription: Subscription,
    backend: ClusterBackend,
    blobs: BlobBackend,
    folder: Path | None = None,
) -> Server:
    """The server, not started. Port 0 takes a free one; `folder` is `azure/` of the simulator's home by default.

    Raises OSError when the port is taken.
    """
    return Server(port, token, subscription, backend, blobs, folder or paths.home() / "azure")


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, tokens: Tokens) -> None:
        self.tokens = tokens
        self.api: Api | None = None
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def _respond(self) -> None:
        try:
            response = self._answer()
        except ArmError as error:
            response = Response(error.status, error.body(), error.headers)
        except Exception as error:  # noqa: BLE001 - a fault of the simulator is answered, and logged, as the server's
            _log.exception("%s %s", self.command, self.path)
            body = ArmError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", repr(error)).body()
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, body)
        self._send(response)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_POST = do_DELETE = _respond

    def _answer(self) -> Response:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = {name.lower(): value for name, value in parse_qsl(url.query)}
        headers = {name.lower(): value for name, value in self.headers.items()}
        if (self.command, url.path) == ("GET", managed_identity.PATH):
            return Response(HTTPStatus.OK, managed_identity.answer(query, headers, self.server.tokens))
        if (self.command, url.path) == ("GET", metadata.PATH):
            endpoint = f"http://127.0.0.1:{self.server.server_port}"
            return Response(HTTPStatus.OK, metadata.answer(endpoint, self.server.tokens.subscription.tenant_id))
        self._check_token()
        if self.server.api is None:
            raise ArmError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", "The simulated Azure is starting.")
        return self.server.api.handle(Request(self.command, unquote(url.path), query, headers, _json(content)))

    def _check_token(self) -> None:
        given = self.headers.get("Authorization", "")
        if not given:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise ArmError(HTTPStatus.UNAUTHORIZED, "AuthenticationFailed", message)
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.tokens.secret}".encode()):
            raise ArmError(HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken", "The access token is invalid.")

    def _send(self, response: Response) -> None:
        content = json.dumps(response.body).encode() if response.body is not None else b""
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if response.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)


def _json(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError as error:
        message = f"The request content was invalid and could not be deserialized: '{error}'."
        raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidRequestContent", message) from error
