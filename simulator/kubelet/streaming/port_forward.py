"""`kubectl port-forward`: each forwarded connection is a pair of streams of one SPDY connection.

Source: kubernetes/kubernetes, pkg/kubelet/cri/streaming/portforward (protocol portforward.k8s.io).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from simulator.kubelet.shim_client import ShimError
from simulator.kubelet.streaming.spdy import Connection, Stream

PROTOCOL = "portforward.k8s.io"
_CHUNK = 2**15

Connect = Callable[[int], socket.socket]


def serve(connection: Connection, pod: str, connect: Connect) -> None:
    """Serves until the client is gone. `pod` is the name in error messages."""
    requests: dict[str, dict[str, Stream]] = {}

    def opened(stream: Stream) -> None:
        request = stream.headers["requestid"]
        pair = requests.setdefault(request, {})
        pair[stream.headers["streamtype"]] = stream
        if len(pair) == 2:
            del requests[request]
            threading.Thread(target=_forward, args=(pair["data"], pair["error"], pod, connect), daemon=True).start()

    connection.serve(opened)


def _forward(data: Stream, error: Stream, pod: str, connect: Connect) -> None:
    port = int(data.headers["port"])
    with contextlib.suppress(OSError):  # the client is gone
        try:
            with connect(port) as server:
                threading.Thread(target=_send, args=(data, server), daemon=True).start()
                while received := server.recv(_CHUNK):
                    data.write(received)
        except ShimError as reason:
            error.write(f"error forwarding port {port} to pod {pod}: {reason}".encode())
        data.close()
        error.close()


def _send(data: Stream, server: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the server accepts no more
        for part in data.chunks():
            server.sendall(part)
        server.shutdown(socket.SHUT_WR)
