"""Pools that are up keep their OS disks, and so their names: no default takes nodes away under their jobs."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.existing import check_existing
from components.os_disks import keep_disks
from config.schema.models import Settings
from config.schema.pools import agent_pool_name
from tests.support.mocked_azure import Azure
from tests.support.mocks import deploy
from tests.support.settings import H100, T4, load

FORMER, NEW, OWN = "gpu4082", "gpuba3d", "gpu0b7b"
"""The pool of H100 nodes with 128 GB managed, 512 GB ephemeral and 256 GB managed: names tell the disks."""
SET = "pulumi config set -s dev"


def kept(stack: dict[str, Any], azure: Azure, monkeypatch: pytest.MonkeyPatch) -> tuple[Settings, list[str]]:
    """The settings that the platform is made with, and what is said."""
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text: said.append(text))
    found: list[Settings] = []
    settings = load(stack)
    deploy(lambda: found.append(keep_disks(settings, check_existing(settings))), azure)
    return found[0], said


def there(*names: str) -> Azure:
    disks = {
        NEW: {"osDiskSizeGB": 512, "osDiskType": "Ephemeral"},
        OWN: {"osDiskSizeGB": 256, "osDiskType": "Managed"},
    }
    return Azure(cluster=True, pools={name: {"vmSize": H100, **disks.get(name, {})} for name in names})


@pytest.mark.parametrize(
    ("pool", "azure", "gets"),
    [
        ({}, Azure(), (NEW, "512 GB Ephemeral")),
        ({}, there("other4082"), (NEW, "512 GB Ephemeral")),
        ({}, there(FORMER), (FORMER, "128 GB Managed")),
        ({}, there(NEW), (NEW, "512 GB Ephemeral")),
        ({}, there(FORMER, NEW), (NEW, "512 GB Ephemeral")),  # FORMER is about to go
        ({}, there(OWN), (OWN, "256 GB Managed")),
        ({"osDiskGb": 256}, there(OWN), (OWN, "256 GB Managed")),
        ({"osDiskType": "Managed"}, there(FORMER), (FORMER, "128 GB Managed")),
        ({"osDiskGb": 512, "osDiskType": "Ephemeral"}, there(FORMER), (NEW, "512 GB Ephemeral")),
        ({"osDiskType": "Ephemeral"}, there(FORMER), (NEW, "512 GB Ephemeral")),
        ({"vmSku": T4}, there(FORMER), ("gpu3a8a", "512 GB Managed")),
    ],
)
def test_a_pool_keeps_its_disk_unless_the_settings_say_another(
    pool: dict[str, Any], azure: Azure, gets: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, _ = kept({"pools": {"gpu": {"vmSku": H100, **pool}}}, azure, monkeypatch)
    (made,) = settings.gpu_pools().values()
    assert (agent_pool_name("gpu", made), str(made.disk)) == gets


def test_jobs_are_placed_on_the_pool_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _ = kept({"vmSku": H100, "workloads": "notebook"}, there(FORMER), monkeypatch)
    assert settings.placements["notebook"].pool == settings.gpu_pools()["gpu"]
    assert settings.gpu_pools()["gpu"].disk.gb == 128


@pytest.mark.parametrize("azure", [Azure(), there(NEW)])
def test_a_pool_that_has_the_default_is_not_spoken_of(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept({"vmSku": H100}, azure, monkeypatch)[1] == []


def test_a_pool_that_keeps_another_is_told_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = {"pools": {"gpu": {"vmSku": H100}}}
    (text,) = kept(stack, there(FORMER), monkeypatch)[1]
    assert text.startswith("the nodes of pool gpu have OS disks of 128 GB Managed, which stay; new pools get 512 GB ")
    change = f"{SET} --path pools.gpu.osDiskGb 512 && {SET} --path pools.gpu.osDiskType Ephemeral"
    keep = f"{SET} --path pools.gpu.osDiskGb 128 && {SET} --path pools.gpu.osDiskType Managed"
    assert f"its jobs start again: {change} && pulumi up -s dev; or keep it: {keep}" in text
    assert text.endswith(keep)


@pytest.mark.parametrize(
    ("node_count", "moved"),
    [({}, "2 && pulumi config rm -s dev vmSku"),
     ({"nodeCount": 3}, "3 && pulumi config rm -s dev vmSku && pulumi config rm -s dev nodeCount")],
)  # fmt: skip
def test_the_pool_of_one_vm_size_is_first_made_one_of_pools(
    node_count: dict[str, int], moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = kept({"vmSku": H100, **node_count}, there(FORMER), monkeypatch)[1]
    assert text.count(f"{SET} --path pools.gpu.vmSku {H100} && {SET} --path pools.gpu.count {moved} && ") == 2


@pytest.mark.parametrize(("line", "name"), [(0, NEW), (1, FORMER)])
@pytest.mark.parametrize("stack", [{"vmSku": H100, "nodeCount": 3}, {"pools": {"gpu": {"vmSku": H100, "count": 3}}}])
def test_the_lines_do_what_they_say(
    stack: dict[str, Any], line: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other keys stay as they are, and nothing is said any more."""
    (text,) = kept(stack, there(FORMER), monkeypatch)[1]
    lines = text.partition("start again: ")[2].split("; or keep it: ")
    settings, said = kept(after(lines[line], stack), there(FORMER), monkeypatch)
    assert said == []
    (pool,) = settings.gpu_pools().values()
    assert (agent_pool_name("gpu", pool), pool.count) == (name, 3)


def after(commands: str, stack: dict[str, Any]) -> dict[str, Any]:
    """The stack file once these commands have run."""
    pool = dict(stack.get("pools", {}).get("gpu", {}))
    top = {key: value for key, value in stack.items() if key != "pools"}
    for command in commands.split(" && "):
        match command.split():
            case ["pulumi", "config", "set", "-s", "dev", "--path", path, value]:
                pool[path.removeprefix("pools.gpu.")] = value
            case ["pulumi", "config", "rm", "-s", "dev", key]:
                del top[key]
            case other:
                assert other == ["pulumi", "up", "-s", "dev"]
    return {**top, "pools": {"gpu": pool}}
