"""Contract tests check the frames."""

from __future__ import annotations

import socket
import struct

import pytest

from simulator.kubelet.streaming.spdy import Connection

RESET = struct.pack(">HHII", 0x8003, 3, 8, 1) + struct.pack(">I", 5)
"""A complete frame RST_STREAM: version 3, 8 bytes, stream 1, with a status."""


@pytest.mark.parametrize("sent", range(len(RESET) + 1))
def test_a_connection_closed_within_a_frame_ends(sent: int) -> None:
    client, ours = socket.socketpair()
    with client, ours:
        client.sendall(RESET[:sent])
        client.shutdown(socket.SHUT_WR)
        Connection(ours).serve(lambda _: pytest.fail("no stream was opened"))
