from __future__ import annotations

import http.server
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from simulator.host.certificates import Authority
from simulator.sandbox.library import olmo_data

SAS = "sp=rcwl&sig=good"
CONTAINER = "/account/olmo-data"


@dataclass
class Blobs:
    port: int = 0
    authority: str = ""
    stored: dict[str, bytes] = field(default_factory=dict)
    staged: dict[str, dict[str, bytes]] = field(default_factory=dict)
    fetches: bool = True
    """Whether Put Block From URL works."""
    blocks_before_outage: int | None = None
    cut_bytes: int = 0
    """The bytes to cut off from each committed blob."""
    written_blocks: list[str] = field(default_factory=list)
    """The blob's path for each block, in order."""
    puts: list[str] = field(default_factory=list)
    """The path of each blob written without blocks, in order."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{CONTAINER}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    blobs: Blobs

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""

    def _begin(self) -> tuple[str, dict[str, list[str]], bytes] | None:
        """Returns path in the container, query and body, or None after an error."""
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "sig=good" not in url.query.split("&"):
            self._answer(403, {"x-ms-error-code": "AuthenticationFailed"})
            return None
        return url.path.removeprefix(CONTAINER + "/"), parse_qs(url.query), body

    def do_HEAD(self) -> None:
        if request := self._begin():
            blob = self.blobs.stored.get(request[0])
            self._answer(404 if blob is None else 200, {"Content-Length": str(len(blob or b""))}, head=True)

    def do_GET(self) -> None:
        if request := self._begin():
            names = self.blobs.staged.get(request[0], {})
            text = "".join(
                f"<Block><Name>{name}</Name><Size>{len(data)}</Size></Block>" for name, data in names.items()
            )
            self._answer(200 if names else 404, {}, f"<UncommittedBlocks>{text}</UncommittedBlocks>".encode())

    def do_PUT(self) -> None:
        if request := self._begin():
            path, query, body = request
            kind = query.get("comp", ["blob"])[0]
            {"block": self._block, "blocklist": self._commit, "blob": self._put}[kind](path, query, body)

    def _block(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        blobs = self.blobs
        if source := self.headers.get("x-ms-copy-source"):
            if not blobs.fetches:
                return self._answer(404, {"x-ms-error-code": "CannotVerifyCopySource"})
            first, last = map(int, re.findall(r"\d+", self.headers["x-ms-source-range"]))
            body = olmo_data.content(urlsplit(source).path)[first : last + 1]
        if blobs.blocks_before_outage is not None and len(blobs.written_blocks) >= blobs.blocks_before_outage:
            return self._answer(500, {"x-ms-error-code": "InternalError"})
        blobs.staged.setdefault(path, {})[query["blockid"][0]] = body
        blobs.written_blocks.append(path)
        return self._answer(201)

    def _commit(self, path: str, _: dict[str, list[str]], body: bytes) -> None:
        staged = self.blobs.staged.pop(path, {})
        content = b"".join(staged[name] for name in re.findall("<Latest>([^<]*)</Latest>", body.decode()))
        self.blobs.stored[path] = content[: len(content) - self.blobs.cut_bytes]
        self._answer(201)

    def _put(self, path: str, _: dict[str, list[str]], body: bytes) -> None:
        if self.headers.get("x-ms-blob-type") != "BlockBlob":
            return self._answer(400)
        self.blobs.stored[path] = body
        self.blobs.puts.append(path)
        return self._answer(201)

    def _answer(
        self, status: int, headers: dict[str, str] | None = None, body: bytes = b"", *, head: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if not head:
            self.wfile.write(body)


@contextmanager
def blob_server(folder: Path) -> Iterator[Blobs]:
    """Serves until the block ends. `folder` has the certificate."""
    authority = Authority(folder, "blob-test-ca")
    authority.issue("server", "127.0.0.1", hosts=("127.0.0.1",), server=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.path("server", "crt"), authority.path("server", "key"))
    blobs = Blobs(authority=authority.pem)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"blobs": blobs}))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    blobs.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield blobs
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
