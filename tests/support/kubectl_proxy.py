"""A fake kubectl whose `proxy` serves a test's answers through a Unix socket."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

_SERVER = """
import http.server, json, socketserver, sys
ANSWERS = json.loads(sys.argv[1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code, body = ANSWERS.get(self.path, (404, {"message": "not found"}))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    def log_message(self, *_): ...
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
with Server(sys.argv[sys.argv.index("--unix-socket") + 1], Handler) as server:
    print("Starting to serve", flush=True)
    server.serve_forever()
"""


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def install(folder: Path, answers: Mapping[str, tuple[int, object]]) -> None:
    """`answers` are status and body by path; other paths return 404."""
    server, kubectl = folder / "proxy.py", folder / "kubectl"
    server.write_text(_SERVER)
    kubectl.write_text(f"#!/bin/sh\nexec {sys.executable} {server} '{json.dumps(answers)}' \"$@\"\n")
    kubectl.chmod(0o755)
