from __future__ import annotations

from ipaddress import ip_address, ip_network

from simulator.kubelet.addresses import POD_CIDR, Addresses


def pod(uid: str, address: str | None = None) -> dict[str, object]:
    return {"metadata": {"uid": uid}, "status": {"podIP": address} if address else {}}


def test_each_pod_keeps_its_own_address() -> None:
    addresses = Addresses(list)
    first, second = addresses.of(pod("a")), addresses.of(pod("b"))
    assert first != second
    assert addresses.of(pod("a")) == first
    assert {ip_address(each) in ip_network(POD_CIDR) for each in (first, second)} == {True}


def test_a_pod_keeps_its_address_over_a_restart_of_the_simulator() -> None:
    had = Addresses(list).of(pod("a"))
    old = pod("a", had)
    addresses = Addresses(lambda: [old])
    assert addresses.of(pod("new")) != had
    assert addresses.of(old) == had


def test_the_same_port_of_two_pods_has_two_ports_here() -> None:
    addresses = Addresses(list)
    found = [addresses.port(uid, container, 8000) for uid in ("a", "b") for container in ("server", "client")]
    assert len(set(found)) == 4
    assert addresses.port("a", "server", 8000) == found[0]


def test_forgets_a_deleted_pod() -> None:
    addresses = Addresses(list)
    kept = addresses.port("b", "server", 8000)
    addresses.port("a", "server", 8000)
    first = addresses.of(pod("a"))
    addresses.forget("a")
    assert addresses.of(pod("a")) != first
    assert addresses.port("b", "server", 8000) == kept
