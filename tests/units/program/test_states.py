"""Stacks of earlier versions: none of their resources gets another URN unnoticed, and what they export can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import workloads
from config.rules.platform_stack import OUTPUT
from tests.support import golden, states
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
    assert settings.rdma_resource == "nvidia.com/mlnxnics"


@pytest.mark.parametrize("stack", states.PLATFORMS)
def test_platforms_of_this_version_say_no_more_than_those_of_the_last_could(stack: str) -> None:
    """An earlier program refuses what it does not know: a key more is for platforms that set it."""
    assert golden.run(stack).shown[OUTPUT] == kept(VERSIONS[-1], "platform")[stack]
