"""Runs a container's command beside what its kubelet and its node give it, as a container runtime's shim does.

Called by the sandbox as `shim <port of the Kubernetes API, or 0> -- <command>...`. Beside the command it
- answers the kubelet on a Unix socket: runs further commands in the container, opens connections to its ports, sends
  signals to the command;
- brings the API's port of 127.0.0.1 to that very address of the machine, by the uplink;
- brings ports of the pod's other containers, whose network is the same, to these, by their shims.
All live in processes that end with the sandbox.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

from simulator.host.relay import relay
from simulator.sandbox.library import uplink_client, view

HOST = "127.0.0.1"
SOCKET = view.FOLDER / "pod" / "shim"
TIMEOUT_S = 60.0
NOT_FOUND = 127
"""As shells and container runtimes report a command that is not there."""
_REQUEST_BYTES = 2**17


def main(arguments: list[str]) -> int:
    """Becomes the command."""
    port, command = int(arguments[0]), arguments[2:]
    kubelet = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kubelet.bind(str(SOCKET))
    kubelet.listen()
    itself = os.getpid()
    _beside(kubelet, lambda client: _answer(client, itself))
    if port:
        _beside(socket.create_server((HOST, port)), lambda client: _forward(client, port))
    for neighbours_port, name in view.load_self()["neighbours"].items():
        _next_door(name, int(neighbours_port))
    try:
        os.execvp(command[0], command)  # noqa: S606 - the container's own command, no shell
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND


def _beside(listener: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Serves each client in a process of its own, and goes on meanwhile."""
    if child := os.fork():
        os.waitpid(child, 0)  # the listener is not the command's child
        listener.close()
        return
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with client:
                serve(client)
            os._exit(0)
        client.close()


def _forward(client: socket.socket, port: int) -> None:
    """A refused client is closed at once, as by a server that does not answer."""
    with contextlib.suppress(ConnectionRefusedError), uplink_client.connect(HOST, port, TIMEOUT_S) as server:
        relay(client, server)


def _next_door(name: str, port: int) -> None:
    """The port is this container's, too. A client is closed at once where nobody answers there."""
    shim = view.FOLDER / "neighbours" / name / "pod" / "shim"

    def forward(client: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as neighbour:
            neighbour.connect(str(shim))
            neighbour.send(json.dumps({"connect": port}).encode())
            _, files, _, _ = socket.recv_fds(neighbour, _REQUEST_BYTES, 1)
            for file in files:
                with socket.socket(fileno=file) as server:
                    relay(client, server)

    _beside(socket.create_server((HOST, port)), forward)


def _answer(kubelet: socket.socket, command: int) -> None:
    """One request of the kubelet, in JSON, with the files that go with it. `command` is the process to send signals."""
    message, files, _, _ = socket.recv_fds(kubelet, _REQUEST_BYTES, 3)
    request: dict[str, Any] = json.loads(message)
    if "connect" in request:
        _connect(kubelet, request["connect"])
    elif "signal" in request:
        os.kill(command, request["signal"])
        kubelet.send(b"{}")
    else:
        kubelet.send(json.dumps(_run(request["run"], files, terminal=request["terminal"])).encode())


def _connect(kubelet: socket.socket, port: int) -> None:
    """Sends the connection itself."""
    try:
        with socket.create_connection((HOST, port), TIMEOUT_S) as server:
            server.settimeout(None)
            socket.send_fds(kubelet, [b"{}"], [server.fileno()])
    except OSError as error:
        kubelet.send(json.dumps({"error": f"dial tcp4 {HOST}:{port}: connect: {error.strerror}".lower()}).encode())


def _run(argv: list[str], files: list[int], *, terminal: bool) -> dict[str, Any]:
    """The exit code of a command whose standard streams are `files`, as shells tell it; or why it did not start."""

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    stdin, stdout, stderr = files
    try:
        started = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=take_terminal if terminal else None,  # no other thread is here
        )
    except FileNotFoundError:
        return {"error": f'exec: "{argv[0]}": executable file not found in $PATH'}
    except OSError as error:
        return {"error": f'exec: "{argv[0]}": {(error.strerror or str(error)).lower()}'}
    for file in files:
        os.close(file)
    code = started.wait()
    return {"code": code if code >= 0 else 128 - code}
