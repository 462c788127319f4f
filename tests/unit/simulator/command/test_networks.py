"""Where commands are: networks by name, group and stack, the machines in them, and how `make up` gets inside."""

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
    monkeypatch.setenv(environment.INSIDE, "")  # set, so that what `up` makes of it ends with the test
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def arm(home: Path) -> Iterator[Arm]:
    """A network in the group of the stack `private`, and one elsewhere; nobody serves any more."""
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
def test_a_network_is_named_by_itself_its_group_or_its_stack(arm: Arm, text: str, found: list[str]) -> None:
    assert networks.find(text) == found


def test_machines_are_told_with_their_network(arm: Arm) -> None:
    assert networks.jump_boxes() == {f"{STACK}+ai": [], "rg+ai": []}
    jump_box(arm)
    assert networks.jump_boxes() == {f"{STACK}+ai": ["jump"], "rg+ai": []}


def test_commands_are_inside_of_what_is_named(arm: Arm) -> None:
    cli.enter("private")
    inside = environment.settings()
    assert inside["HTTPS_PROXY"] == inside["https_proxy"] == inside["HTTP_PROXY"] == inside["http_proxy"]
    assert inside["HTTPS_PROXY"].startswith("http://ai-on-aks-private%2Bai:inside@127.0.0.1:")
    assert inside["AZURE_POD_IDENTITY_AUTHORITY_HOST"].endswith("/inside/ai-on-aks-private%2Bai")


@pytest.mark.parametrize(
    ("text", "words"), [("ai", "several virtual networks are called ai"), ("no", "no virtual network is called no")]
)
def test_what_is_not_one_network_is_refused_with_those_there_are(arm: Arm, text: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        cli.enter(text)
    assert str(refused.value).endswith(f"There are:\n  --inside {STACK}+ai\n  --inside rg+ai")


def test_outside_names_of_azure_go_to_the_simulator_too(home: Path) -> None:
    outside = environment.settings()
    assert outside["HTTPS_PROXY"].startswith("http://127.0.0.1:")
    assert outside["NO_PROXY"] == outside["no_proxy"] == "127.0.0.1,localhost"


def test_the_users_own_proxy_is_kept_for_the_rest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://corporate:3128")
    first = environment.settings()
    assert first[environment.OUTER] == "http://corporate:3128"
    for name, value in first.items():
        monkeypatch.setenv(name, value)
    assert environment.settings() == first
    assert cli._daemon_environment()[environment.OUTER] == "http://corporate:3128"


@pytest.mark.parametrize("name", ["*", ".windows.net", "core.windows.net", "*.azurecr.io", "azmk8s.io"])
def test_no_exception_of_the_users_lets_names_of_azure_out(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("NO_PROXY", f"intranet.example,{name}")
    assert environment.settings()["NO_PROXY"] == "intranet.example,127.0.0.1,localhost"


# -- make up -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def applied(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where each `pulumi up` was made, and `jobs` once they are waited for. Outside it makes a jump box, if `JUMP` is
    set; inside, the rest.
    """
    where: list[str] = []
    monkeypatch.setenv("STACK", "private")
    monkeypatch.setattr(up, "_make_sure_of", lambda _: None)

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


def test_up_goes_on_inside_by_the_jump_box(applied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMP", "1")
    up.up()
    assert applied == ["", f"{STACK}+ai", "jobs"]
    monkeypatch.delenv(environment.INSIDE)
    up.up()  # a jump box that is there already is entered at once
    assert applied == ["", f"{STACK}+ai", "jobs", f"{STACK}+ai", "jobs"]


def test_up_without_a_jump_box_says_how_to_go_on(applied: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    up.up()
    assert applied == [""]
    assert f"make up STACK=private INSIDE={STACK}+ai" in capsys.readouterr().out


def test_whoever_is_inside_stays_there(applied: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.INSIDE, "rg+ai")
    up.up()
    assert applied == ["rg+ai", "jobs"]
