"""Base classes of simulated Azure's servers on 127.0.0.1, with one thread per connection."""

from __future__ import annotations

import logging
import socketserver
import ssl
import threading
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from simulator.azure import trust
from simulator.host.certificates import Authority

_log = logging.getLogger(__name__)
_POLL_S = 0.05  # how often the server checks for `stop`


class Background(socketserver.BaseServer):
    """A server that runs in a separate thread from `start` to `stop`."""

    daemon_threads = True
    _thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL_S,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread:
            self.shutdown()
            self._thread.join()
        self.server_close()


class HttpsServer(Background, ThreadingHTTPServer):
    """An HTTPS server. Port 0 takes a free port. Raises OSError if the port is in use."""

    def __init__(
        self, port: int, authority: Authority, handler: type[BaseHTTPRequestHandler], certificate: str = trust.SERVER
    ) -> None:
        super().__init__(("127.0.0.1", port), handler)
        own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        own.load_cert_chain(authority.path(certificate, "crt"), authority.path(certificate, "key"))
        self.socket = own.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs at debug level only, because most of these clients disconnected or do not trust the certificate."""
        _log.debug("request of %s ended", client_address, exc_info=True)


class Handler(BaseHTTPRequestHandler):
    """A handler that keeps connections open and writes to the simulator's log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # avoids a delay between headers and body

    def reply(self, status: int, headers: Iterable[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)
