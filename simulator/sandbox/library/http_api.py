"""Serves a simulated program's HTTP API with one function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Answer = tuple[int, Any]
"""Status, and body: text, data for JSON, or None."""


class Request(NamedTuple):
    """One request. `path` is without the query."""

    method: str
    path: str
    headers: Message[str, str]
    body: bytes


def serve(host: str, port: int, answer: Callable[[Request], Answer]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            # Reads the body even if the request is rejected. Otherwise, the client's connection may be reset.
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answer(Request(self.command, self.path.partition("?")[0], self.headers, body))
            text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if text == content else "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = _respond

        def log_message(self, format: str, *args: object) -> None:
            """Does not log requests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Ignores clients that have disconnected."""

    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
