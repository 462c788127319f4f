from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from urllib.parse import unquote
from urllib.request import ProxyHandler, build_opener

import httpx
import pytest
import requests

from simulator.azure import domains, inside, machines, trust
from simulator.azure.data_plane import DataPlane
from simulator.azure.errors import ArmError
from simulator.azure.gateway import Gateway
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.inside import HTTPS, Reached, Unreached
from simulator.azure.registry_front import RegistryFront
from simulator.host.connect import by_proxy
from tests.support import networks as net
from tests.support.arm import CLUSTER, Arm, cluster_body
from tests.support.blob_account import ACCOUNT, account_body
from tests.support.waiting import eventually

NAME = "models.blob.core.windows.net"
ZONE = net.zone("privatelink.blob.core.windows.net")
OTHER = net.NETWORK.replace("/ai", "/other")
HERE, THERE = parse_id(net.NETWORK), parse_id(OTHER)


@pytest.fixture
def network(arm: Arm) -> Arm:
    net.make_network(arm)
    net.make(arm, OTHER, net.network_body("10.32.0.0/16"))
    net.make(arm, ACCOUNT, account_body(publicNetworkAccess="Disabled"))
    net.make_endpoint(arm, "blob", ACCOUNT, "blob", ZONE)
    return arm


def reach(arm: Arm, *, name: str = NAME, network: ResourceId | None = HERE) -> Reached:
    return inside.reach(arm.server.world, name, HTTPS, network)


def test_only_its_network_reaches_the_private_endpoint(network: Arm) -> None:
    assert reach(network) == Reached(parse_id(ACCOUNT), private=True)
    for outside in (None, THERE):
        assert reach(network, network=outside) == Reached(parse_id(ACCOUNT), private=False)


def test_a_linked_zone_must_have_the_name(network: Arm) -> None:
    network.call("DELETE", f"{net.endpoint('blob')}/privateDnsZoneGroups/default")
    with pytest.raises(Unreached, match=f"dial tcp: lookup {NAME}: no such host"):
        reach(network)
    network.call("DELETE", net.link(ZONE))
    assert reach(network) == Reached(parse_id(ACCOUNT), private=False)


@pytest.mark.parametrize("name", ["gone.blob.core.windows.net", "a.privatelink.eastus.azmk8s.io", "mine.azurecr.io"])
def test_resolves_names_of_azure_only_in_the_simulator(network: Arm, name: str) -> None:
    with pytest.raises(Unreached, match="no such host"):
        reach(network, name=name)
    assert reach(network, name="pypi.org") == Reached()


def test_a_private_address_of_another_network_times_out(network: Arm) -> None:
    """Peerings are not simulated."""
    net.make(network, net.link(ZONE, "other"), net.link_body(OTHER))
    with pytest.raises(Unreached, match=r"dial tcp 10\.16\.16\.4:443: i/o timeout"):
        reach(network, network=THERE)


@pytest.mark.parametrize("text", ["ai", "AI", "rg+ai", "RG+ai"])
def test_finds_a_network_by_name_and_label(network: Arm, text: str) -> None:
    assert [inside.label(found) for found in inside.find(network.server.world.store.all(), text)] == ["rg+ai"]


def test_finds_the_networks_of_a_group(network: Arm) -> None:
    there = network.server.world.store.all()
    assert [each.name for each in inside.find(there, "rg")] == ["ai", "other"]
    assert inside.find(there, "none") == []


# -- clusters in a network ---------------------------------------------------------------------------------------------


def nodes(arm: Arm) -> DataPlane:
    return DataPlane(arm.server.world, arm.server.tokens, 1).at(CLUSTER)


def make_cluster(arm: Arm, subnet: str) -> Arm:
    body = cluster_body(apiServerAccessProfile={"enablePrivateCluster": True})
    body["properties"]["agentPoolProfiles"][0]["vnetSubnetID"] = subnet
    net.make(arm, CLUSTER, body)
    arm.backend.api_ports[parse_id(CLUSTER).text] = 7
    return arm


@pytest.fixture
def private(network: Arm) -> Arm:
    return make_cluster(network, net.NODES)


def test_ignores_the_case_of_network_ids(network: Arm) -> None:
    make_cluster(network, net.NODES.replace("/ai/", "/AI/"))
    shown = network.get(CLUSTER)["properties"]
    assert reach(network, name=shown["privateFQDN"]) == Reached(parse_id(CLUSTER), private=True)


def test_only_its_network_reaches_a_private_api_server(private: Arm) -> None:
    shown = private.get(CLUSTER)["properties"]
    assert reach(private, name=shown["privateFQDN"]) == Reached(parse_id(CLUSTER), private=True)
    assert inside.served_at(private.server.world, parse_id(CLUSTER), HTTPS) == 7
    for outside in (None, THERE):
        with pytest.raises(Unreached, match="no such host"):
            reach(private, name=shown["privateFQDN"], network=outside)
        with pytest.raises(Unreached, match="i/o timeout"):  # the public name has the private address
            reach(private, name=shown["fqdn"], network=outside)
    assert nodes(private).names(CLUSTER) == [shown["privateFQDN"], shown["fqdn"]]
    assert shown["privateFQDN"].endswith(".privatelink.eastus.azmk8s.io")


def test_nodes_reach_an_account_from_their_network(private: Arm) -> None:
    service = nodes(private).blob_service("models")
    assert (service.url, service.proxy) == (f"https://{NAME}", "http://rg%2Bai:inside@127.0.0.1:1")
    outside = DataPlane(private.server.world, private.server.tokens, 1)
    assert outside.blob_service("models").url == "https://127.0.0.1:1/models"


def test_nodes_pull_images_by_the_private_endpoint(private: Arm) -> None:
    """Otherwise, the registry's public address rejects the nodes."""
    zone, image = net.zone("privatelink.azurecr.io"), "aiimages.azurecr.io/train:1"
    net.make(private, net.REGISTRY, {**net.REGISTRY_BODY, "properties": {"publicNetworkAccess": "Disabled"}})
    private.server.world.registries.push("aiimages", "train", "1")
    assert str(nodes(private).may_pull(CLUSTER, image)).endswith("service=aiimages.azurecr.io: 403 Forbidden")
    net.make_endpoint(private, "images", net.REGISTRY, "registry", zone, recorded=False)
    assert str(nodes(private).may_pull(CLUSTER, image)).endswith("lookup aiimages.azurecr.io: no such host")
    net.make(private, f"{net.endpoint('images')}/privateDnsZoneGroups/default", net.group_body(zone))
    assert str(nodes(private).may_pull(CLUSTER, image)).endswith("401 Unauthorized")  # it has no role there


# -- machines ----------------------------------------------------------------------------------------------------------


def addresses(arm: Arm, label: str) -> list[str]:
    path = f"{domains.machine(label)}/metadata/instance/network/interface"
    found = machines.metadata(arm.server.world, unquote(path), {"metadata": "true"})
    return [each["privateIpAddress"] for interface in found for each in interface["ipv4"]["ipAddress"]]


def test_the_metadata_service_returns_the_address_of_a_machine(network: Arm) -> None:
    assert addresses(network, "rg+ai") == ["10.16.255.254"]  # a runner's without a resource
    net.make(network, net.INTERFACE, net.interface_body())
    assert addresses(network, "rg+ai") == ["10.16.16.5"]


def test_the_metadata_service_needs_a_network(network: Arm) -> None:
    for label in ("", "rg+none"):
        with pytest.raises(ArmError, match="No machine runs"):
            addresses(network, label)


# -- the proxy ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def gateway(network: Arm) -> Iterator[Gateway]:
    started = Gateway(0, network.server.world, network.server.port)
    yield started
    started.stop()


def connect(gateway: Gateway, host: str, user: str = "", port: int = HTTPS) -> socket.socket:
    return by_proxy((host, port), domains.proxy(gateway.port, user))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize(("user", "destination"), [("rg+ai", parse_id(ACCOUNT)), ("rg+other", None), ("", None)])
def test_the_gateway_knows_clients_of_private_endpoints(
    network: Arm, gateway: Gateway, listener: socket.socket, user: str, destination: ResourceId | None
) -> None:
    network.blobs.endpoint = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with connect(gateway, NAME, user) as client:
        server, (_, port) = listener.accept()
        with server:
            assert gateway.destination(port) == destination
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"
    eventually(lambda: gateway.destination(port) is None, "the client disconnected")


def test_forwards_plain_http_but_not_to_microsoft(gateway: Gateway, listener: socket.socket) -> None:
    proxy, words = f"http://127.0.0.1:{gateway.port}", "blocks requests to Microsoft"
    with httpx.Client(proxy=proxy, trust_env=False) as client:
        for host in ("management.azure.com", "169.254.169.254", "graph.microsoft.com"):
            answer = client.get(f"http://{host}/metadata/identity")
            assert (answer.status_code, words in answer.reason_phrase) == (502, True), answer.reason_phrase
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(b"GET http://127.0.0.1:%d/a HTTP/1.1\r\nHost: a\r\n\r\n" % listener.getsockname()[1])
        server, _ = listener.accept()
        with server:
            assert server.recv(1024) == b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            server.sendall(b"HTTP/1.1 204 Fine\r\n\r\n")
        assert client.recv(1024) == b"HTTP/1.1 204 Fine\r\n\r\n"


def _by_urllib(proxy: str, url: str) -> None:
    build_opener(ProxyHandler({"https": proxy})).open(url, timeout=20)


def _by_requests(proxy: str, url: str) -> None:
    requests.get(url, proxies={"https": proxy}, timeout=20)


def _by_httpx(proxy: str, url: str) -> None:
    with httpx.Client(proxy=proxy, trust_env=False) as client:
        client.get(url)


@pytest.mark.parametrize("get", [_by_urllib, _by_requests, _by_httpx])
def test_python_clients_send_their_network_to_the_proxy(gateway: Gateway, get: Callable[[str, str], None]) -> None:
    with pytest.raises(Exception, match=r"The virtual network rg\+none does not exist"):
        get(domains.proxy(gateway.port, "rg+none"), f"https://{NAME}/")


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("gone.blob.core.windows.net", HTTPS, "502 dial tcp: lookup gone.blob.core.windows.net: no such host"),
        (NAME, 80, "connection refused"),
    ],
)
def test_rejects_unreachable_hosts_as_a_resolver_does(gateway: Gateway, host: str, port: int, words: str) -> None:
    with pytest.raises(OSError, match=re.escape(words)):
        connect(gateway, host, "rg+ai", port)


@pytest.mark.parametrize(
    ("user", "status", "words"),
    [
        ("rg+ai", 401, 'Bearer realm="https://aiimages.azurecr.io/oauth2/token",service="aiimages.azurecr.io"'),
        ("rg+other", 403, r"client with IP '[\d.]+' is not allowed access"),
        ("", 403, r"client with IP '[\d.]+' is not allowed access"),
    ],
)
def test_a_private_registry_rejects_its_public_address(
    network: Arm, gateway: Gateway, user: str, status: int, words: str
) -> None:
    net.make(network, net.REGISTRY, {**net.REGISTRY_BODY, "properties": {"publicNetworkAccess": "Disabled"}})
    net.make_endpoint(network, "images", net.REGISTRY, "registry", net.zone("privatelink.azurecr.io"))
    front = RegistryFront(network.server.world, gateway.destination)
    try:
        with httpx.Client(proxy=domains.proxy(gateway.port, user), verify=trust.client(), trust_env=False) as client:
            answer = client.get("https://aiimages.azurecr.io/v2/")
    finally:
        front.stop()
    assert answer.status_code == status
    assert re.search(words, answer.headers.get("www-authenticate", answer.text))


def test_forwards_connections_to_other_hosts(gateway: Gateway, listener: socket.socket) -> None:
    with connect(gateway, "127.0.0.1", "rg+ai", listener.getsockname()[1]) as client:
        server, _ = listener.accept()
        with server:
            client.sendall(b"hello")
            assert server.recv(5) == b"hello"


@pytest.mark.parametrize(
    "host", ["management.azure.com", "aka.ms", "dc.services.visualstudio.com", "MCR.microsoft.com"]
)
def test_blocks_other_hosts_of_microsoft(gateway: Gateway, host: str) -> None:
    with pytest.raises(OSError, match=f"502 The simulator does not serve {host}, and its proxy blocks requests"):
        connect(gateway, host)


@pytest.mark.parametrize("host", domains.SERVED)
def test_serves_some_hosts_of_microsoft(network: Arm, gateway: Gateway, host: str) -> None:
    """Clients verify the certificate with the simulator's authority."""
    trusted = ssl.create_default_context(cafile=network.ca_file)
    with httpx.Client(proxy=domains.proxy(gateway.port, ""), verify=trusted, trust_env=False) as client:
        answer = client.get(f"https://{host}/organizations/v2.0/.well-known/openid-configuration")
    assert answer.json()["token_endpoint"].endswith("/oauth2/v2.0/token")
