from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from simulator.host.socks import SocksProxy

POD = "10.244.128.1"
REFUSED, UNREACHABLE, OK, NO_COMMAND = 5, 4, 0, 7


@pytest.fixture
def inner() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def connect(inner: tuple[socket.socket, socket.socket]) -> Iterator[Callable[..., tuple[int, socket.socket]]]:
    clients: list[socket.socket] = []

    def dial(host: str, port: int) -> socket.socket | None:
        if port == 1:
            raise ConnectionRefusedError
        return inner[0] if (host, port) in ((POD, 80), ("name", 80)) else None

    proxy = SocksProxy(dial)

    def request(address: bytes, port: int, command: int = 1) -> tuple[int, socket.socket]:
        client = socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), timeout=20)
        clients.append(client)
        client.sendall(bytes([5, 1, 0]))
        assert client.recv(2) == bytes([5, 0])
        client.sendall(bytes([5, command, 0]) + address + struct.pack("!H", port))
        return client.recv(10)[1], client

    yield request
    for client in clients:
        client.close()
    proxy.stop()


@pytest.mark.parametrize("address", [b"\x01" + socket.inet_aton(POD), b"\x03\x04name"], ids=["an address", "a name"])
def test_connects_to_an_address_in_the_cluster(
    connect: Callable[..., tuple[int, socket.socket]], inner: tuple[socket.socket, socket.socket], address: bytes
) -> None:
    code, client = connect(address, 80)
    assert code == OK
    client.sendall(b"ask")
    assert inner[1].recv(3) == b"ask"
    inner[1].sendall(b"answer")
    assert client.recv(6) == b"answer"


@pytest.mark.parametrize(
    ("port", "command", "code"),
    [(81, 1, UNREACHABLE), (1, 1, REFUSED), (80, 2, NO_COMMAND)],
    ids=["nothing there", "refused", "another command"],
)
def test_answers_with_the_reason_if_it_cannot_connect(
    connect: Callable[..., tuple[int, socket.socket]], port: int, command: int, code: int
) -> None:
    assert connect(b"\x01" + socket.inet_aton(POD), port, command)[0] == code
