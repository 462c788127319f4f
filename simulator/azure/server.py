"""The HTTPS server of simulated Resource Manager on 127.0.0.1. It requires a bearer token.

Without a token, clients can only get tokens and metadata.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from simulator.azure import domains, graph, guard, login, machines, managed_identity, trust
from simulator.azure.api import Api
from simulator.azure.arm_world import World
from simulator.azure.backend import BlobBackend, ClusterBackend
from simulator.azure.errors import ArmError, LoginError, not_allowed
from simulator.azure.https import Handler, HttpsServer
from simulator.azure.operations import Operations
from simulator.azure.registries import Registries
from simulator.azure.rest import CORRELATION, Request, Response
from simulator.azure.store import Store
from simulator.azure.subscription import Principal, Subscription
from simulator.azure.tokens import GRAPH, Tokens
from simulator.host import paths
from simulator.world.faults import FaultStore

_log = logging.getLogger(__name__)
_CLIENTS_ID = "x-ms-client-request-id"


class Server:
    """Simulated Azure. `start` returns at once; stored clusters start in the background."""

    def __init__(
        self,
        port: int,
        token: str,
        subscription: Subscription,
        backend: ClusterBackend,
        blobs: BlobBackend,
        folder: Path | None = None,
    ) -> None:
        """Loads the store. Port 0 takes a free port. `folder` defaults to `azure/` in the simulator's folder.

        Raises OSError if the port is in use. Raises BadRecords.
        """
        folder = folder or paths.home() / "azure"
        registries, faults = Registries(folder.parent / "registries"), FaultStore(folder.parent)
        self.world = World(Store(folder), subscription, backend, blobs, registries, faults)
        self.operations = Operations(self.world)
        self._http = _Http(port, trust.authority(folder.parent), _Handler, trust.FRONT)
        self.port: int = self._http.server_port
        self.endpoint = f"https://127.0.0.1:{self.port}"
        self.tokens = Tokens(token, trust.token_key(folder.parent), subscription, self.endpoint)
        self._http.front = _Front(self.world, Api(self.world, self.operations, self.endpoint), self.tokens)

    def start(self) -> None:
        self._http.start("arm-http")
        self.operations.resume()

    def stop(self) -> None:
        """Stops the server and the operations. The backends must be stopped separately."""
        self._http.stop()
        self.operations.stop()


@dataclass(frozen=True)
class _Front:
    world: World
    api: Api
    tokens: Tokens

    def answer(self, request: Request, content: bytes) -> Response:
        open_to_all = self._without_token(request, content)
        if open_to_all is not None:
            return Response(HTTPStatus.OK, open_to_all)
        if _host(request) == domains.GRAPH:
            self._check_token(request.headers.get("authorization", ""), GRAPH)
            return Response(HTTPStatus.OK, graph.answer(self.world, replace(request, body=_json(content))))
        caller = self._check_token(request.headers.get("authorization", ""), self.tokens.arm)
        if request.path.endswith(guard.PATH):
            return Response(HTTPStatus.OK, guard.review(self.world, request.path, _json(content)))
        return self.api.handle(replace(request, body=_json(content), caller=caller))

    def _without_token(self, request: Request, content: bytes) -> Any:
        """Returns None if the endpoint requires a token."""
        path, headers, tokens, host = request.path, request.headers, self.tokens, _host(request)
        served: dict[str, tuple[str, Callable[[], Any]]] = {
            domains.IDENTITY: (
                "GET",
                lambda: managed_identity.answer(path, request.query, headers, self.world, tokens),
            ),
            login.CLOUD: ("GET", lambda: login.cloud(request.query.get("api-version", ""), tokens)),
            machines.METADATA: ("GET", lambda: machines.metadata(self.world, path, headers)),
            login.DISCOVERY: ("GET", lambda: login.discovery(path, tokens, host)),
            login.INSTANCE: ("GET", login.instance),
            login.KEYS: ("GET", lambda: login.keys(path, tokens)),
            login.TOKEN: ("POST", lambda: login.token(path, content, self.world, tokens)),
        }
        for end, (method, answer) in served.items():
            if path.endswith(end):
                if request.method != method:
                    raise not_allowed(request.method, path)
                return answer()
        if host == domains.LOGIN:
            raise login.no_browser(path)
        return None

    def _check_token(self, given: str, audience: str) -> Principal | None:
        """Returns the principal, or None for the simulator's secret."""
        if not given:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise ArmError(HTTPStatus.UNAUTHORIZED, "AuthenticationFailed", message)
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer":  # RFC 9110, 11.1: the scheme is case-insensitive
            message = "Authentication failed. The 'Authorization' header is provided in an invalid format."
            raise ArmError(HTTPStatus.UNAUTHORIZED, "AuthenticationFailedInvalidHeader", message)
        if hmac.compare_digest(token.encode(), self.tokens.secret.encode()):
            return None
        claims = self.tokens.claims(token)
        if claims is None:
            raise ArmError(HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationToken", "The access token is invalid.")
        # Error text: learn.microsoft.com/azure/logic-apps/create-single-tenant-workflows-azure-portal.
        if claims["exp"] < time.time():
            ended, now = _utc(claims["exp"]), _utc()
            message = f"The access token expiry UTC time '{ended}' is earlier than current UTC time '{now}'."
            raise ArmError(HTTPStatus.UNAUTHORIZED, "ExpiredAuthenticationToken", message)
        if claims["aud"].rstrip("/") != audience:
            message = (
                f"The access token has been obtained for wrong audience or resource '{claims['aud']}'. "
                f"It should exactly match with one of the allowed audiences '{audience}'."
            )
            raise ArmError(HTTPStatus.UNAUTHORIZED, "InvalidAuthenticationTokenAudience", message)
        names = {"object_id": claims["oid"], "client_id": claims["appid"], "upn": claims.get("upn", "")}
        return Principal(**names, groups=tuple(claims.get("groups", ())))


class _Http(HttpsServer):
    front: _Front


class _Handler(Handler):
    server: _Http

    def _respond(self) -> None:
        try:
            response = self._answer()
        except ArmError as error:
            response = Response(error.status, error.body(), error.headers)
        except LoginError as error:
            response = Response(error.status, error.body)
        except Exception as error:  # noqa: BLE001 - simulator errors are logged and returned as 500
            _log.exception("%s %s", self.command, self.path)
            body = ArmError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", repr(error)).body()
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, body)
        self._send(response)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_POST = do_DELETE = _respond

    def _answer(self) -> Response:
        content = self._content()
        url = urlsplit(self.path)
        query = {name.lower(): value for name, value in parse_qsl(url.query)}
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.server.front.answer(Request(self.command, unquote(url.path), query, headers), content)

    def _content(self) -> bytes:
        """Raises ArmError and closes the connection for an invalid length."""
        try:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                return b"".join(_chunks(self.rfile))
            return self.rfile.read(_size(self.headers.get("Content-Length") or "0", 10))
        except ValueError as error:
            self.close_connection = True
            message = f"The length of the request's content is invalid: {error}."
            raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidRequestContent", message) from error

    def _send(self, response: Response) -> None:
        content = json.dumps(response.body).encode() if response.body is not None else b""
        self.reply(response.status, (*response.headers.items(), *self._ids().items()), content)

    def _ids(self) -> dict[str, str]:
        """Source: Azure's page "Common API details" (resource provider contract)."""
        found = {"x-ms-request-id": str(uuid.uuid4())}
        found[CORRELATION] = self.headers.get(CORRELATION) or str(uuid.uuid4())
        given = self.headers.get(_CLIENTS_ID)
        if given and self.headers.get("x-ms-return-client-request-id", "").lower() == "true":
            found[_CLIENTS_ID] = given
        return found


def _host(request: Request) -> str:
    return request.headers.get("host", "").lower().partition(":")[0]


def _utc(seconds: float | None = None) -> str:
    return time.strftime("%m/%d/%Y %I:%M:%S %p", time.gmtime(seconds))


def _chunks(stream: BufferedIOBase) -> Iterator[bytes]:
    """Decodes a chunked body (RFC 9112, 7.1)."""
    while size := _size(stream.readline().decode("latin-1").partition(";")[0].strip(), 16):
        yield stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass  # trailers


def _size(text: str, base: int) -> int:
    """Rejects signs and underscores, which `int` accepts."""
    if not text.isalnum():
        raise ValueError(repr(text))
    return int(text, base)


def _json(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        message = f"The request content was invalid and could not be deserialized: '{error}'."
        raise ArmError(HTTPStatus.BAD_REQUEST, "InvalidRequestContent", message) from error
