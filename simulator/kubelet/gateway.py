"""The way from sandboxed pods to Azure: they have no network, but a socket through which storage accounts answer.

A simulated command speaks HTTP/1.1 on it, with the account's own host name: `GET /data/part-0?<SAS>` and
`Host: <account>.blob.core.windows.net`. What the blob service answers, refusals of a SAS included, comes back as it is.
"""

from __future__ import annotations

import http.client
import http.server
import os
import re
import socket
import socketserver
import ssl
import threading
from pathlib import Path
from urllib.parse import urlsplit

from simulator.kubelet.cloud import BlobService, Cloud

SOCKET = "azure.sock"
"""In the folder of world.json, so /run/simulator/world/azure.sock in a sandbox."""
_HOST = re.compile(r"([a-z0-9]{3,24})\.(?:blob|dfs)\.core\.windows\.net(?::443)?")
_NOT_FORWARDED = {"connection", "host", "keep-alive", "transfer-encoding"}
_TIMEOUT_S = 60
_POLL_S = 0.05


class Gateway:
    """Of one cluster; its threads run until `stop`."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SOCKET).unlink(missing_ok=True)
        self._server = _Server(folder, cloud)
        threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="gateway", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        self.cloud = cloud
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:  # by its descriptor, since the path of a socket is 107 bytes at most
            super().__init__(f"/proc/self/fd/{descriptor}/{SOCKET}", _Handler)
        finally:
            os.close(descriptor)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """A Unix socket's peer has no address; the handler wants one."""
        request, _ = self.socket.accept()
        return request, ("pod", 0)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        host = self.headers.get("Host", "")
        found = _HOST.fullmatch(host)
        service = self.server.cloud.blob_service(found[1]) if found else None
        if service is None:
            self._answer(502, [], f"Could not resolve host: {host}\n".encode())
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_FORWARDED}
        try:
            self._answer(*_ask(service, self.command, self.path, headers, body))
        except OSError as error:
            self._answer(502, [], f"{host} does not answer: {error}\n".encode())

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _forward

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        named = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in _NOT_FORWARDED:
                self.send_header(name, value)
        if "content-length" not in named:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: their query may hold a SAS."""


def _ask(
    service: BlobService, method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and content of the blob service's answer. Raises OSError where there is none."""
    url = urlsplit(service.url)
    trusting = ssl.create_default_context(cafile=str(service.ca_file))
    connection = http.client.HTTPSConnection(url.netloc, timeout=_TIMEOUT_S, context=trusting)
    try:
        connection.request(method, url.path + path, body, headers)
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()
