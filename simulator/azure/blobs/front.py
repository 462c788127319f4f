"""The HTTPS server of all storage accounts on 127.0.0.1. It applies `policy.py` and forwards requests to Azurite.

The account is the first part of the path or of the host name. Azurite accepts both (blobStorageContext.middleware,
extractStoragePartsFromPath).
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from simulator.azure import domains, trust
from simulator.azure.blobs.changes import Changes
from simulator.azure.blobs.policy import BlobRequest, Refusal
from simulator.azure.https import Handler, HttpsServer
from simulator.host.certificates import Authority

Rule = Callable[[BlobRequest], Refusal | None]
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
_READS = ("GET", "HEAD")
_DOMAINS = (domains.BLOBS, domains.DFS)
_TIMEOUT_S = 60
_STARTING_S = 60.0  # the time that a request waits for Azurite to start
_POLL_S = 0.05
_LOCKS = 64
Answer = tuple[int, list[tuple[str, str]], bytes]


class Front(HttpsServer):
    """The server. It runs until `stop`. It buffers whole requests and responses, because blobs are small here."""

    def __init__(
        self, port: int, upstream_port: Callable[[], int], authority: Authority, rule: Rule, changes: Changes
    ) -> None:
        super().__init__(port, authority, _Handler, trust.STORAGE)
        self.rule, self.changes, self._upstream_port = rule, changes, upstream_port
        self.write_locks = [threading.Lock() for _ in range(_LOCKS)]
        self._trusting = ssl.create_default_context(cadata=authority.pem)
        self.start("blobs")

    def upstream(self) -> http.client.HTTPSConnection:
        """Returns a connection to Azurite. Raises OSError if Azurite does not accept it in time."""
        deadline = time.monotonic() + _STARTING_S
        while True:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self._upstream_port(), timeout=_TIMEOUT_S, context=self._trusting
            )
            try:
                connection.connect()
            except (ConnectionRefusedError, ConnectionResetError, ssl.SSLEOFError):  # Azurite starts or stops
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return connection


class _Handler(Handler):
    server: Front

    def _respond(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        authorization = self.headers.get("Authorization", "")
        path, client = f"{self._account()}{unquote(url.path)}", int(self.client_address[1])
        request = BlobRequest(self.command, path, query, authorization, content, client)
        if self.headers.get("Transfer-Encoding"):
            refusal: Refusal | None = Refusal(
                HTTPStatus.LENGTH_REQUIRED, "MissingContentLengthHeader", "The Content-Length header was not specified."
            )
            self.close_connection = True  # because the content was not read
        else:
            refusal = self.server.rule(request)
        if refusal:
            self._refuse(refusal)
            return
        try:
            self._pass_on(path, content)
        except (OSError, http.client.HTTPException) as error:
            message = f"The blob service of the simulator does not answer: {error}"
            self._refuse(Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "ServerBusy", message))

    do_GET = do_HEAD = do_PUT = do_PATCH = do_POST = do_DELETE = do_OPTIONS = _respond

    def _account(self) -> str:
        name, _, domain = self.headers.get("Host", "").partition(".")
        return f"/{name}" if domain.partition(":")[0] in _DOMAINS else ""

    def _pass_on(self, path: str, content: bytes) -> None:
        if self.command in _READS:
            try:
                answer = self._ask(content)
            except ConnectionResetError:
                answer = self._ask(content)  # Azurite restarted during the request
        else:
            answer = self._write(path, content)
        self._send(*answer)

    def _write(self, path: str, content: bytes) -> Answer:
        """Serializes writes of the same blob, so that the last log entry is for the last write."""
        with self.server.write_locks[hash(path) % _LOCKS]:
            etag: str | None = ""
            try:
                answer = self._ask(content)
                etag = None if self._removed(answer) else _new_etag(self.command, answer)
            finally:  # an error may come after the write
                self.server.changes.record(path, etag)
        return answer

    def _removed(self, answer: Answer) -> bool:
        """Returns whether the request deleted the blob, not only a snapshot or part of the blob."""
        query = dict(parse_qsl(urlsplit(self.path).query))
        of_it = {"comp", "snapshot", "versionid"} & query.keys() or "x-ms-delete-snapshots" in self.headers
        return self.command == "DELETE" and answer[0] == HTTPStatus.ACCEPTED and not of_it

    def _ask(self, content: bytes) -> Answer:
        upstream = self.server.upstream()
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    upstream.putheader(name, value)
            upstream.endheaders(content or None)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _refuse(self, refusal: Refusal) -> None:
        text = f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message></Error>"
        body = f'<?xml version="1.0" encoding="utf-8"?>{text}'.encode()
        headers = [("x-ms-error-code", refusal.code), ("Content-Type", "application/xml")]
        self._send(refusal.status, headers, b"" if self.command == "HEAD" else body)

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        sized = self.command == "HEAD" or status == HTTPStatus.NO_CONTENT
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP and (sized or name.lower() != "content-length"):
                self.send_header(name, value)
        if not sized:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _new_etag(command: str, answer: Answer) -> str:
    status, headers, _ = answer
    found = {name.lower(): value for name, value in headers}.get("etag", "")
    return found.strip('"') if command == "PUT" and status == HTTPStatus.CREATED else ""
