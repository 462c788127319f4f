"""A proxy for vc-webhook-manager 1.10, because the chart of 1.15 has webhooks that 1.10 does not know.

Allows all PodGroups, for which 1.15 only checks that the queue is open. Denies kinds that have no controller in 1.10.
Forwards all other requests.
Run with PORT UPSTREAM_PORT CERTIFICATE KEY -- vc-webhook-manager ...
"""

from __future__ import annotations

import http.client
import http.server
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from typing import Any

ALLOWED = frozenset({"/podgroups/validate"})
REFUSED = {
    "/hypernodes/validate": "HyperNode",
    "/cronjobs/validate": "CronJob of batch.volcano.sh",
}


def review(path: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the AdmissionReview that answers `request`, or None to forward it."""
    uid = request.get("request", {}).get("uid", "")
    if path in ALLOWED:
        response: dict[str, Any] = {"uid": uid, "allowed": True}
    elif path in REFUSED:
        message = f"the simulator runs Volcano 1.10, which has no {REFUSED[path]}"
        response = {"uid": uid, "allowed": False, "status": {"message": message, "code": 422}}
    else:
        return None
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: int

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = review(self.path.partition("?")[0], json.loads(body or b"{}"))
        status, content = (200, json.dumps(answer).encode()) if answer else self._forward(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        unverified = ssl._create_unverified_context()  # noqa: S323 - the child process on this machine's loopback
        connection = http.client.HTTPSConnection("127.0.0.1", self.upstream, context=unverified, timeout=30)
        try:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except OSError as error:
            return 502, f"vc-webhook-manager does not answer: {error}".encode()
        finally:
            connection.close()

    def log_message(self, format: str, *args: object) -> None:
        """Does not log requests, because the webhook manager does."""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(argv: list[str]) -> int:
    split = argv.index("--")
    port, upstream, certificate, key = argv[:split]
    child = subprocess.Popen(argv[split + 1 :])
    handler = type("Handler", (_Handler,), {"upstream": int(upstream)})
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while child.poll() is None and not _listens(int(upstream)):
        time.sleep(0.1)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    server.daemon_threads = True
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
