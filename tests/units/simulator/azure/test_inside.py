"""Inside and outside of virtual networks: a real client of the proxy, and where names lead from each network."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from simulator.azure import inside
from simulator.azure.gateway import Gateway
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.inside import HTTPS, Reached, Unreached
from simulator.host.connect import by_proxy
from tests.support import networks as net
from tests.support.arm import Arm
from tests.support.blob_account import ACCOUNT, account_body
from tests.support.waiting import eventually

NAME = "models.blob.core.windows.net"
ZONE = net.zone("privatelink.blob.core.windows.net")
OTHER = net.NETWORK.replace("/ai", "/other")
HERE, THERE = parse_id(net.NETWORK), parse_id(OTHER)


@pytest.fixture
def network(arm: Arm) -> Arm:
    """Two networks; in one of them a private endpoint of an account that lets nobody else in."""
    net.make_network(arm)
    net.make(arm, OTHER, net.network_body("10.32.0.0/16"))
    net.make(arm, ACCOUNT, account_body(publicNetworkAccess="Disabled"))
    net.make(arm, net.endpoint("blob"), net.endpoint_body(ACCOUNT, "blob"))
    net.make(arm, ZONE, {"location": "global"})
    net.make(arm, f"{net.endpoint('blob')}/privateDnsZoneGroups/default", net.group_body(ZONE))
    net.make(arm, net.link(ZONE), net.link_body())
    return arm


def reach(arm: Arm, *, name: str = NAME, network: ResourceId | None = HERE) -> Reached:
    return inside.reach(arm.server.world, name, HTTPS, network)


def test_a_private_endpoint_is_reached_in_its_network(network: Arm) -> None:
    assert reach(network) == Reached(parse_id(ACCOUNT), private=True)


def test_elsewhere_the_name_leads_to_the_public_address(network: Arm) -> None:
    for outside in (None, THERE):
        assert reach(network, network=outside) == Reached(parse_id(ACCOUNT), private=False)


def test_a_zone_that_is_not_linked_is_not_asked(network: Arm) -> None:
    network.call("DELETE", net.link(ZONE))
    assert reach(network) == Reached(parse_id(ACCOUNT), private=False)


def test_a_zone_without_the_name_says_so(network: Arm) -> None:
    network.call("DELETE", f"{net.endpoint('blob')}/privateDnsZoneGroups/default")
    with pytest.raises(Unreached, match=f"dial tcp: lookup {NAME}: no such host"):
        reach(network)


def test_a_zone_of_another_network_leads_to_an_address_that_does_not_answer(network: Arm) -> None:
    """There is no peering."""
    net.make(network, net.link(ZONE, "other"), net.link_body(OTHER))
    with pytest.raises(Unreached, match=r"dial tcp 10\.16\.16\.4:443: i/o timeout"):
        reach(network, network=THERE)


def test_names_of_azure_that_nothing_has_are_not_looked_up_elsewhere(network: Arm) -> None:
    for name in ("somebody.blob.core.windows.net", "a.privatelink.eastus.azmk8s.io", "mine.azurecr.io"):
        with pytest.raises(Unreached, match="no such host"):
            reach(network, name=name)
    assert reach(network, name="pypi.org") == Reached()


@pytest.mark.parametrize("text", ["ai", "AI", "rg+ai", "RG+ai"])
def test_a_network_is_found_by_name_and_label(network: Arm, text: str) -> None:
    assert [inside.label(found) for found in inside.find(network.server.world.store.all(), text)] == ["rg+ai"]


def test_a_group_stands_for_its_networks(network: Arm) -> None:
    there = network.server.world.store.all()
    assert [each.name for each in inside.find(there, "rg")] == ["ai", "other"]
    assert inside.find(there, "none") == []


# -- the proxy ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(network: Arm) -> Iterator[Gateway]:
    started = Gateway(0, network.server.world)
    yield started
    started.stop()


def connect(gateway: Gateway, host: str, user: str = "", port: int = HTTPS) -> socket.socket:
    """Asks the proxy for a connection. Raises OSError with what it answers."""
    return by_proxy((host, port), f"http://{quote(user)}@127.0.0.1:{gateway.port}")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Stands where something is served."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize(("user", "came_to"), [("rg+ai", parse_id(ACCOUNT)), ("rg+other", None), ("", None)])
def test_a_service_knows_who_came_to_its_endpoint(
    network: Arm, gateway: Gateway, listener: socket.socket, user: str, came_to: ResourceId | None
) -> None:
    network.blobs.endpoint = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with connect(gateway, NAME, user) as client:
        server, (_, port) = listener.accept()
        with server:
            assert gateway.came_to(port) == came_to
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
    eventually(lambda: gateway.came_to(port) is None, "it is forgotten")


@pytest.mark.parametrize(
    ("host", "user", "words"),
    [
        ("gone.blob.core.windows.net", "", "502 dial tcp: lookup gone.blob.core.windows.net: no such host"),
        (NAME, "rg+none", "502 There is no virtual network rg+none in simulated Azure"),
    ],
)
def test_what_is_not_reached_is_told_as_a_resolver_would(gateway: Gateway, host: str, user: str, words: str) -> None:
    with pytest.raises(OSError, match=re.escape(words)):
        connect(gateway, host, user)


def test_an_account_has_no_other_port(gateway: Gateway) -> None:
    with pytest.raises(OSError, match="connection refused"):
        connect(gateway, NAME, "rg+ai", port=80)


def test_the_world_outside_is_reached_through_it(gateway: Gateway, listener: socket.socket) -> None:
    with connect(gateway, "127.0.0.1", "rg+ai", listener.getsockname()[1]) as client:
        server, _ = listener.accept()
        with server:
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
