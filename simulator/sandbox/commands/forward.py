"""Runs a container's command beside a listener that stands for one server outside: the Kubernetes API.

Called by the sandbox as `forward <port> -- <command>...`: what connects to 127.0.0.1:<port> in the sandbox reaches that
very address of the machine by the uplink, which lets through what the simulator allows and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading

from simulator.sandbox.commands import uplink

HOST = "127.0.0.1"
TIMEOUT_S = 60.0
NOT_FOUND = 127
"""As shells and container runtimes report a command that is not there."""
_CHUNK = 2**16


def main(arguments: list[str]) -> int:
    """Becomes the command; the listener lives in a child, which ends with the sandbox."""
    port, command = int(arguments[0]), arguments[2:]
    listener = socket.create_server((HOST, port))
    if os.fork() == 0:
        _serve(listener, port)
    listener.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - the container's own command, no shell
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND


def _serve(listener: socket.socket, port: int) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_forward, args=(client, port), daemon=True).start()


def _forward(client: socket.socket, port: int) -> None:
    """A refused client is closed at once, as by a server that does not answer."""
    with client, contextlib.suppress(ConnectionRefusedError), uplink.connect(HOST, port, TIMEOUT_S) as server:
        server.settimeout(None)
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
