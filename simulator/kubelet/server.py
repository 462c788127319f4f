"""The kubelets' HTTPS endpoint, for the API server: `kubectl logs`, `exec` and `port-forward`."""

from __future__ import annotations

import functools
import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlparse

from simulator.host.certificates import Authority
from simulator.host.relay import relay
from simulator.kubelet.access import PodAccess
from simulator.kubelet.logs import Wanted, read, select
from simulator.kubelet.streaming import port_forward, remote_command
from simulator.kubelet.streaming.spdy import Connection


class KubeletServer:
    """The server of a cluster's kubelets. Authenticates the API server by its client certificate."""

    def __init__(self, authority: Authority, port: int, access: PodAccess) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.path("ca", "crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(authority.path("kubelet", "crt"), authority.path("kubelet", "key"))
        handler = type("Handler", (_Handler,), {"access": access})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, name="kubelet-server", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    access: PodAccess

    def do_GET(self) -> None:
        url = urlparse(self.path)
        query = parse_qs(url.query)
        match url.path.strip("/").split("/"):
            case ["containerLogs", namespace, pod, container]:
                self._logs(namespace, pod, container, {key: values[0] for key, values in query.items()})
            case ["exec", namespace, pod, container]:
                self._exec(namespace, pod, container, query)
            case ["portForward", namespace, pod]:
                connect = functools.partial(self.access.connect, namespace, pod)
                serve = functools.partial(port_forward.serve, pod=f"{namespace}/{pod}", connect=connect)
                self._stream(port_forward.PROTOCOL, serve)
            case [what, *_]:
                self.send_error(501, f"The simulated kubelet does not serve {what}")

    do_POST = do_GET  # clients request the upgrade with either method

    def _exec(self, namespace: str, pod: str, container: str, query: dict[str, list[str]]) -> None:
        wanted = {
            "stdin": "input" in query,
            "stdout": "output" in query,
            "stderr": "error" in query,
            "terminal": "tty" in query,
        }
        command = remote_command.Command(tuple(query["command"]), **wanted)
        find = functools.partial(self.access.shim, namespace, pod, container)
        self._stream(remote_command.PROTOCOL, functools.partial(remote_command.serve, command=command, find=find))

    def _stream(self, protocol: str, serve: Callable[[Connection], None]) -> None:
        offered = [
            word.strip() for line in self.headers.get_all("X-Stream-Protocol-Version", []) for word in line.split(",")
        ]
        if self.headers.get("Upgrade", "").lower() != "spdy/3.1" or (offered and protocol not in offered):
            self._plain(403, f"The simulated kubelet streams over SPDY/3.1 with {protocol} only\n")
            return
        self.send_response(101)
        for name, value in {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}.items():
            self.send_header(name, value)
        self.send_header("X-Stream-Protocol-Version", protocol)
        self.end_headers()
        ours, theirs = socket.socketpair()
        with theirs:
            between = threading.Thread(target=relay, args=(self.connection, theirs), daemon=True)
            between.start()
            with ours:
                serve(Connection(ours))
                ours.shutdown(socket.SHUT_RDWR)
            between.join()
        self.close_connection = True

    def _logs(self, namespace: str, pod: str, container: str, query: dict[str, str]) -> None:
        previous = query.get("previous") == "true"
        path = self.access.log(namespace, pod, container, previous=previous)
        if path is not None:
            follow = functools.partial(self.access.can_grow, namespace, pod, container, path)
            self._send_log(read(path, follow if query.get("follow") == "true" else lambda: False), Wanted.by(query))
        elif previous:
            self._plain(400, f'previous terminated container "{container}" in pod "{pod}" not found\n')
        else:
            self._plain(*self.access.why_no_log(namespace, pod, container))

    def _send_log(self, log: Iterator[list[str]], wanted: Wanted) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for lines in log:
            data = select(lines, wanted)
            if data:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            wanted = wanted.after(data)
            if wanted.limit == 0:
                break
        self.wfile.write(b"0\r\n\r\n")

    def _plain(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Does not log requests."""
