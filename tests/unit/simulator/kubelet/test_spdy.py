"""SPDY by which kubectl comes into pods: a client may be gone at any byte. How frames look the truth tests see."""

from __future__ import annotations

import socket
import struct

import pytest

from simulator.kubelet.streaming.spdy import Connection

RESET = struct.pack(">HHII", 0x8003, 3, 8, 1) + struct.pack(">I", 5)
"""A whole frame RST_STREAM: version 3, of 8 bytes, of stream 1, with a status."""


@pytest.mark.parametrize("sent", range(len(RESET) + 1))
def test_a_client_that_is_gone_in_the_middle_of_a_frame_ends_it(sent: int) -> None:
    client, ours = socket.socketpair()
    with client, ours:
        client.sendall(RESET[:sent])
        client.shutdown(socket.SHUT_WR)
        Connection(ours).serve(lambda _: pytest.fail("no stream was opened"))
