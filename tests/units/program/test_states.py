"""Stacks of earlier versions: none of their resources gets another URN unnoticed, and what they export can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workloads
from config.rules.platform_stack import OUTPUT
from config.schema.models import StackFile
from config.schema.os_disk import FORMER_DISK
from config.schema.pools import agent_pool_name
from tests.support import golden, states
from tests.support.mocked_azure import Azure
from tests.support.settings import load

VERSIONS = sorted(file.stem for file in states.FOLDER.glob("*.json"))


def kept(version: str, what: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = json.loads((states.FOLDER / f"{version}.json").read_text("utf-8"))
    return found[what]


def test_there_is_a_version_to_come_from() -> None:
    assert VERSIONS


@pytest.mark.parametrize("stack", states.STACKS)
@pytest.mark.parametrize("version", VERSIONS)
def test_resources_are_known_by_the_urn_that_they_had(version: str, stack: str) -> None:
    had = set(kept(version, "urns")[stack])
    found = states.Urns(golden.run(stack))
    known = set(found.before).union(*found.before.values())
    assert had - known == set(), "these would be deleted"


@pytest.mark.parametrize("stack", states.PLATFORMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_workloads_of_other_stacks_run_on_platforms_of_that_version(version: str, stack: str) -> None:
    outputs = json.loads(json.dumps({OUTPUT: kept(version, "platform")[stack]}), parse_int=float)
    lodger = {"platformStack": "theirs", "workloads": "nccl-allreduce"}
    settings = load(lodger, name="jobs", others={"theirs": outputs}, known=workloads.find())
    assert settings.placements["nccl-allreduce"].pool.vm_sku.startswith("Standard_ND")
    assert settings.placements["nccl-allreduce"].pool.disk == FORMER_DISK, "of which its pool is named"
    assert settings.rdma_resource == "nvidia.com/mlnxnics"


@pytest.mark.parametrize("stack", states.PLATFORMS)
def test_platforms_of_that_version_that_are_up_keep_their_pools_and_what_they_say(stack: str) -> None:
    """New defaults are for new pools: a name that stays is a pool, with its jobs, that stays."""
    said = kept(VERSIONS[-1], "platform")[stack]
    sizes = {key: said["settings"][key] for key in ("vmSku", "nodeCount", "pools") if key in said["settings"]}
    pools = StackFile.model_validate(sizes).gpu_pools()
    names = {agent_pool_name(key, pool.with_disk(FORMER_DISK)): {"vmSize": pool.vm_sku} for key, pool in pools.items()}
    found = golden.run_on(stack, Azure(cluster=True, pools=names))
    made = {pool.inputs["agentPoolName"]: pool.inputs for pool in found.registered if pool.type.endswith(":AgentPool")}
    assert set(made) == set(names)
    assert {(pool["osDiskSizeGB"], pool["osDiskType"]) for pool in made.values()} == {(128, "Managed")}
    assert found.shown[OUTPUT] == said


@pytest.mark.parametrize("stack", states.PLATFORMS)
def test_platforms_of_this_version_say_no_more_than_those_of_the_last_could(stack: str) -> None:
    """An earlier program refuses what it does not know: a key more is for platforms that set it.

    It knows those of disks, which are not those that it would give the pools.
    """
    said, before = golden.run(stack).shown[OUTPUT], kept(VERSIONS[-1], "platform")[stack]
    assert without_pools(said) == without_pools(before)
    known = {"vmSku", "count", "osDiskGb", "osDiskType"}
    for key, pool in said["settings"]["pools"].items():
        assert set(pool) - known <= set(before["settings"].get("pools", {}).get(key, {}))


def without_pools(said: dict[str, Any]) -> dict[str, Any]:
    settings = {key: value for key, value in said["settings"].items() if key != "pools"}
    return {**said, "settings": settings}
