"""The client of `simulator/sandbox/uplink.py`."""

from __future__ import annotations

import socket

from simulator.sandbox.library import view

FOLDER = view.FOLDER / "world"
SOCKET, AUTHORITIES = "uplink", "authorities.pem"


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """Connects to a server outside of the sandbox. Raises ConnectionRefusedError if it is not allowed."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(FOLDER / SOCKET))
        connection.sendall(f"{host} {port}\n".encode("ascii"))
        answer = connection.recv(16)  # only `ok`, because servers do not send first
    except OSError as error:
        connection.close()
        raise ConnectionRefusedError(f"Failed to connect to {host} port {port}") from error
    if answer != b"ok\n":
        connection.close()
        raise ConnectionRefusedError(f"Failed to connect to {host} port {port}")
    return connection
