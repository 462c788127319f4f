"""Serves an HTTP API of a simulated program: one function answers all requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Answer = tuple[int, Any]
"""Status, and the body: text, data that is sent as JSON, or None."""


class Request(NamedTuple):
    """One request; the path is without its query."""

    method: str
    path: str
    headers: Message[str, str]
    body: bytes

    @property
    def words(self) -> list[str]:
        return self.path.strip("/").split("/")


def serve(host: str, port: int, answer: Callable[[Request], Answer]) -> ThreadingHTTPServer:
    """Serves in threads of its own; port 0 chooses a free one."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            # The body is read in any case: else a refused client may get a reset, and no answer.
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = answer(Request(self.command, self.path.partition("?")[0], self.headers, body))
            plain = said is None or isinstance(said, str)
            text = (said or "").encode() if plain else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if plain else "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _respond

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """The client is gone."""

    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
