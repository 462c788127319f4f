from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from simulator.host.certificates import cluster_certificates

TOKEN = "the-pods-own-token"


@dataclass
class Api:
    """`account` is the kubelets' folder at /var/run/secrets/kubernetes.io/serviceaccount."""

    node: str
    account: Path
    labels: dict[str, str] = field(default_factory=dict)
    patches: list[dict[str, str | None]] = field(default_factory=list)
    reads: int = 0
    forbidden: bool = False
    port: int = 0

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, object]:
        if token != f"Bearer {TOKEN}" or path != f"/api/v1/nodes/{self.node}" or self.forbidden:
            return 403, {"message": f'nodes "{self.node}" is forbidden'}
        if method == "PATCH":
            change: dict[str, str | None] = json.loads(body)["metadata"]["labels"]
            self.patches.append(change)
            merged = {**self.labels, **change}
            self.labels = {name: value for name, value in merged.items() if value is not None}
        else:
            self.reads += 1
        return 200, {"metadata": {"name": self.node, "labels": self.labels}}


@contextmanager
def served(node: str, folder: Path) -> Iterator[Api]:
    """Uses a simulated cluster's certificates."""
    authority = cluster_certificates(folder / "certificates")
    account = folder / "account"
    account.mkdir()
    (account / "token").write_text(TOKEN)
    (account / "ca.crt").write_text(authority.pem)
    api = Api(node, account)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.path("apiserver", "crt"), authority.path("apiserver", "key"))
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    api.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, document = api.answer(self.command, self.path, self.headers["Authorization"], body)
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = _respond

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    return Handler
