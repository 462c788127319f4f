from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.host import ports
from simulator.host.certificates import Authority
from simulator.host.network import ClusterNetwork

POD = "10.244.128.1"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[ClusterNetwork]:
    authority = Authority(tmp_path, "test")
    authority.issue("kubelet", "kubelet", server=True)
    made = ClusterNetwork(authority, ports.free(set()))
    yield made
    made.stop()


def test_an_unknown_address_has_no_connection(network: ClusterNetwork) -> None:
    assert network.dial(POD, 9443) is None


def test_a_separate_network_serves_all_ports_of_an_address(network: ClusterNetwork) -> None:
    dialled: list[int] = []
    ours, theirs = socket.socketpair()

    def door(port: int) -> socket.socket:
        dialled.append(port)
        return theirs

    network.open(POD, door)
    assert network.dial(POD, 9443) is theirs
    assert network.dial("10.244.128.2", 9443) is None
    network.unroute(POD)
    assert network.dial(POD, 9443) is None
    assert dialled == [9443]
    ours.close()
    theirs.close()


def test_a_local_port_takes_precedence_over_a_separate_network(network: ClusterNetwork) -> None:
    def closed(port: int) -> socket.socket:
        raise ConnectionRefusedError(port)

    network.open(POD, closed)
    with pytest.raises(ConnectionRefusedError):
        network.dial(POD, 9443)
    with socket.create_server(("127.0.0.1", 0)) as server:
        network.route(POD, 9443, server.getsockname()[1])
        found = network.dial(POD, 9443)
        assert found is not None
        found.close()
