from __future__ import annotations

import socket
from pathlib import Path

import pytest

from simulator.host import ports


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


def set_kernel_range(monkeypatch: pytest.MonkeyPatch, folder: Path, first: int) -> None:
    (folder / "range").write_text(f"{first}\t60999\n")
    monkeypatch.setattr(ports, "_KERNELS_OWN", folder / "range")


def test_chooses_a_port_below_the_kernels_range() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(10_000 <= ports.free(set()) < first for _ in range(20))


def test_does_not_choose_a_port_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_kernel_range(monkeypatch, tmp_path, 10_004)
    free = {ports.free(set()) for _ in range(50)}
    with socket.create_server(("127.0.0.1", kept := free.pop())):
        assert {ports.free(set()) for _ in range(50)} == free
    assert kept not in {ports.free({kept}) for _ in range(50)}


def test_reports_that_no_port_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_kernel_range(monkeypatch, tmp_path, 10_004)
    with pytest.raises(ports.PortTaken, match="No port from 10000 to 10003 is free"):
        ports.free(set(range(10_000, 10_004)))


def test_keeps_a_port(home: Path) -> None:
    chosen = ports.port("aks.apiserver")
    assert ports.port("aks.apiserver") == chosen
    assert ports.port("aks.etcd") != chosen


def test_rejects_a_port_of_another_process() -> None:
    with (
        socket.create_server(("127.0.0.1", ports.port("arm"))),
        pytest.raises(ports.PortTaken, match=r"Port \d+ \(for arm\) .* is taken by another process \(.*ports\.json"),
    ):
        ports.require_free("arm")
    assert ports.require_free("arm") == ports.port("arm")


@pytest.mark.parametrize("text", ["x", "80", "70000", "8080.5", "-1"])
def test_rejects_an_invalid_port(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_ARM_PORT", text)
    with pytest.raises(ports.PortTaken, match=f"SIMULATOR_ARM_PORT={text} is not a valid port"):
        ports.port("arm")
