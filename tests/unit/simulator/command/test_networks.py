from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.command import cli, environment, networks, up
from simulator.command.cli import Refused
from tests.support import networks as net
from tests.support.arm import GROUP, Arm, FakeBackend, start

STACK = "ai-on-aks-private"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (environment.OUTER, "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(environment.INSIDE, "")  # so that changes by `up` end with the test
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def arm(home: Path) -> Iterator[Arm]:
    started = start(home / "azure", FakeBackend())
    for group in (GROUP, GROUP.replace("/rg", f"/{STACK}")):
        assert started.put(group, {"location": "eastus"}).status_code == 201
    net.make(started, net.NETWORK, net.network_body())
    net.make(started, net.NETWORK.replace("/rg/", f"/{STACK}/"), net.network_body())
    net.make(started, net.ENDPOINTS.replace("/rg/", f"/{STACK}/"), net.subnet_body("10.16.16.0/24"))
    yield started
    started.stop()


def jump_box(arm: Arm) -> None:
    interface = net.INTERFACE.replace("/rg/", f"/{STACK}/")
    net.make(arm, interface, net.interface_body(net.ENDPOINTS.replace("/rg/", f"/{STACK}/")))
    net.make(arm, net.MACHINE.replace("/rg/", f"/{STACK}/"), net.machine_body(interface))


@pytest.mark.parametrize(
    ("text", "found"),
    [("private", [f"{STACK}+ai"]), (STACK, [f"{STACK}+ai"]), ("rg+ai", ["rg+ai"]), ("dev", [])],
)
def test_finds_a_network_by_name_group_or_stack(arm: Arm, text: str, found: list[str]) -> None:
    assert networks.find(text) == found


def test_lists_machines_by_network(arm: Arm) -> None:
    assert networks.jump_boxes() == {f"{STACK}+ai": [], "rg+ai": []}
    jump_box(arm)
    assert networks.jump_boxes() == {f"{STACK}+ai": ["jump"], "rg+ai": []}


def test_commands_use_the_proxy_of_the_network(arm: Arm) -> None:
    cli.enter("private")
    inside = environment.settings()
    assert inside["HTTPS_PROXY"] == inside["https_proxy"] == inside["HTTP_PROXY"] == inside["http_proxy"]
    assert inside["HTTPS_PROXY"].startswith("http://ai-on-aks-private%2Bai:inside@127.0.0.1:")
    assert inside["AZURE_POD_IDENTITY_AUTHORITY_HOST"].endswith("/inside/ai-on-aks-private%2Bai")


@pytest.mark.parametrize(
    ("text", "words"), [("ai", "several virtual networks match ai"), ("no", "no virtual network matches no")]
)
def test_rejects_an_ambiguous_or_unknown_network(arm: Arm, text: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        cli.enter(text)
    assert str(refused.value).endswith(f"The networks are:\n  --inside {STACK}+ai\n  --inside rg+ai")


def test_without_a_network_azures_names_use_the_simulators_proxy(home: Path) -> None:
    outside = environment.settings()
    assert outside["HTTPS_PROXY"].startswith("http://127.0.0.1:")
    assert outside["NO_PROXY"] == outside["no_proxy"] == "127.0.0.1,localhost"


def test_keeps_the_users_proxy_for_other_names(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://corporate:3128")
    first = environment.settings()
    assert first[environment.OUTER] == "http://corporate:3128"
    for name, value in first.items():
        monkeypatch.setenv(name, value)
    assert environment.settings() == first
    assert cli._daemon_environment()[environment.OUTER] == "http://corporate:3128"


@pytest.mark.parametrize("name", ["*", ".windows.net", "core.windows.net", "*.azurecr.io", "azmk8s.io"])
def test_removes_azures_names_from_no_proxy(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NO_PROXY", f"intranet.example,{name}")
    assert environment.settings()["NO_PROXY"] == "intranet.example,127.0.0.1,localhost"


# -- make up -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def applied(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The networks of calls of `pulumi up`, and `jobs` for the wait. The first call creates a jump box if `JUMP` is
    set.
    """
    where: list[str] = []
    monkeypatch.setenv("STACK", "private")
    monkeypatch.setattr(up, "_ensure_stack", lambda _: None)

    def settle(_: object) -> list[Any]:
        where.append("jobs")
        return []

    monkeypatch.setattr(up, "_settle", settle)

    def run(_: str) -> dict[str, Any]:
        where.append(os.environ.get(environment.INSIDE, ""))
        if where[-1]:
            return {"next": "# nothing: both phases are done", "workloadDetails": {}, "clusterId": ""}
        if "JUMP" in os.environ:
            jump_box(arm)
        return {"next": "az network bastion ssh"}

    monkeypatch.setattr(up, "_applied", run)
    monkeypatch.setattr(up, "stacks", SimpleNamespace(chosen=lambda: "private", platform_of=lambda _: None, DEFAULT=""))
    return where


def test_up_continues_as_the_jump_box(applied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMP", "1")
    up.up()
    assert applied == ["", f"{STACK}+ai", "jobs"]
    monkeypatch.delenv(environment.INSIDE)
    up.up()  # enters an existing jump box immediately
    assert applied == ["", f"{STACK}+ai", "jobs", f"{STACK}+ai", "jobs"]


def test_up_without_a_jump_box_shows_how_to_continue(applied: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    up.up()
    assert applied == [""]
    assert f"make up STACK=private INSIDE={STACK}+ai" in capsys.readouterr().out


def test_up_stays_in_the_selected_network(applied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.INSIDE, "rg+ai")
    up.up()
    assert applied == ["rg+ai", "jobs"]
