"""What PyTorch's c10d says of ranks that do not meet at their store, in the words of its version.

An address is tried until time is up, also a name that is not known and a port where nothing listens
(torch/csrc/distributed/c10d/socket.cpp, SocketConnectOp). IPv6 comes first, and its end is the end.
"""

from __future__ import annotations


def unresolved(host: str, port: int) -> str:
    """The warning of each try at a name that is not known."""
    gai = "gai error: -2 - Name or service not known"
    return f"[W socket.cpp] [c10d] The IPv6 network addresses of ({host}, {port}) cannot be retrieved ({gai})."


def timed_out(host: str, port: int, after: str) -> str:
    """`after` comes with its unit: seconds in PyTorch 2.1, milliseconds in 2.8."""
    return f"The client socket has timed out after {after} while trying to connect to ({host}, {port})."


def too_few(joined: int, wanted: int, timeout: int) -> str:
    """TCPStore.cpp, waitForWorkers: it looks at the clock, in s, once a second."""
    return f"Timed out after {timeout + 1} seconds waiting for clients. {joined}/{wanted} clients joined."
