"""Container logs: files in the CRI format, and the kubelet's HTTPS endpoint from which `kubectl logs` reads them."""

from __future__ import annotations

import datetime
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from simulator.cluster.certificates import Authority

_FOLLOW_POLL_S = 0.3


class LogFile:
    """Appends lines as `<RFC 3339 time> stdout F <line>`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def begin(self) -> None:
        """There is a log from now on, if only an empty one: of a container that runs and says nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def line(self, text: str) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self.path.open("a") as file:
            for part in text.splitlines() or [""]:
                file.write(f"{now} stdout F {part}\n")


def select(lines: list[str], *, tail: int | None, timestamps: bool) -> Iterator[str]:
    for line in lines[-tail:] if tail is not None else lines:
        stamp, _, rest = line.partition(" ")
        text = rest.split(" ", 2)[2] if rest.count(" ") >= 2 else ""
        yield f"{stamp} {text}" if timestamps else text


class LogServer:
    """Serves `/containerLogs/<namespace>/<pod>/<container>` to the API server, known by its client certificate."""

    def __init__(
        self,
        authority: Authority,
        port: int,
        find: Callable[[str, str, str], Path | None],
        running: Callable[[str, str], bool],
    ) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.path("ca", "crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(authority.path("kubelet", "crt"), authority.path("kubelet", "key"))
        handler = type("Handler", (_Handler,), {"find": staticmethod(find), "running": staticmethod(running)})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, name="kubelet-logs", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    find: Callable[[str, str, str], Path | None]
    running: Callable[[str, str], bool]

    def do_GET(self) -> None:
        url = urlparse(self.path)
        parts = url.path.strip("/").split("/")
        if len(parts) != 4 or parts[0] != "containerLogs":
            self.send_error(501, "The simulated kubelet serves logs only")
            return
        namespace, pod, container = parts[1:]
        path = self.find(namespace, pod, container)
        if path is None:
            self._plain(f"The simulator runs no process for container {container}; KWOK fakes its pod.\n")
            return
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self._send_log(path, query, lambda: self.running(namespace, pod))

    def _send_log(self, path: Path, query: dict[str, str], still_running: Callable[[], bool]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        tail = int(query["tailLines"]) if "tailLines" in query else None
        timestamps = query.get("timestamps") == "true"
        follow = query.get("follow") == "true"
        sent = 0
        while True:
            running = still_running()
            lines = path.read_text().splitlines()
            self._chunk(select(lines[sent:], tail=tail if sent == 0 else None, timestamps=timestamps))
            sent = len(lines)
            if not (follow and running):
                break
            time.sleep(_FOLLOW_POLL_S)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, lines: Iterator[str]) -> None:
        data = "".join(line + "\n" for line in lines).encode()
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _plain(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
