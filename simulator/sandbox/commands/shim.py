"""Starts a container's command, like the shim of a container runtime, and serves the kubelet.

The sandbox calls `shim <port of the Kubernetes API, or 0> -- <command>...`. While the command runs, the shim
- serves the kubelet on a Unix socket: runs other commands in the container, connects to its ports, sends signals to the
  command;
- forwards the API's port on 127.0.0.1 to the same port of the machine, through the uplink;
- forwards ports of the pod's other containers, which share the pod's network, through their shims.
All this runs in processes that end with the sandbox.
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
"""The exit code of shells and runtimes for a missing command."""
_REQUEST_BYTES = 2**17


def main(arguments: list[str]) -> int:
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
    if child := os.fork():
        os.waitpid(child, 0)  # the serving process is not a child of the command
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
    with contextlib.suppress(ConnectionRefusedError), uplink_client.connect(HOST, port, TIMEOUT_S) as server:
        relay(client, server)


def _next_door(name: str, port: int) -> None:
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
    """Answers the kubelet. Signals go to the process `command`."""
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
    try:
        with socket.create_connection((HOST, port), TIMEOUT_S) as server:
            server.settimeout(None)
            socket.send_fds(kubelet, [b"{}"], [server.fileno()])
    except OSError as error:
        kubelet.send(json.dumps({"error": f"dial tcp4 {HOST}:{port}: connect: {error.strerror}".lower()}).encode())


def _run(argv: list[str], files: list[int], *, terminal: bool) -> dict[str, Any]:
    """Runs a command with the standard streams `files`. Returns its exit code (128 + a signal), or the start error."""

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
            preexec_fn=take_terminal if terminal else None,  # this process has no other threads
        )
    except FileNotFoundError:
        return {"error": f'exec: "{argv[0]}": executable file not found in $PATH'}
    except OSError as error:
        return {"error": f'exec: "{argv[0]}": {(error.strerror or str(error)).lower()}'}
    for file in files:
        os.close(file)
    code = started.wait()
    return {"code": code if code >= 0 else 128 - code}
