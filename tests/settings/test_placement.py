"""Each workload is placed on a pool that will do, or told what is missing there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import workloads
from config.errors import Problem, SettingsError
from config.workload import Ground, Requirements
from tests.settings.stacks import H100, T4, Workload, load

MIXED = {
    "pools": {"a": {"vmSku": T4}, "b": {"vmSku": H100}},
    "operators": {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}},
}
"""Pools with and without InfiniBand."""
DATA = {
    "storage": {
        "containers": {
            "olmo-data": {"permissions": "rl", "upload": True},
            "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
        }
    }
}
"""What OLMo reads and writes."""


def only_on_c(_options: Any, ground: Ground) -> Iterator[Problem]:
    if ground.pool_key != "c":
        yield Problem((*ground.pool_path, "vmSku"), f"is wrong on {ground.pool_key}", "", "")


PICKY = {"picky": Workload("picky", Requirements(), problem=only_on_c)}
"""A workload that is content with one pool only."""


def refused(stack: Mapping[str, Any], **options: Any) -> list[Problem]:
    with pytest.raises(SettingsError) as caught:
        load(stack, **options)
    return list(caught.value.problems)


def test_a_workload_takes_the_first_pool_that_suits_it() -> None:
    settings = load({**MIXED, "workloads": "nccl-allreduce,notebook"})
    assert {name: placed.pool_key for name, placed in settings.placements.items()} == {
        "nccl-allreduce": "b",
        "notebook": "a",
    }


def test_a_workload_passes_over_pools_with_too_few_nodes() -> None:
    pools = {"a": {"vmSku": H100, "count": 0}, "b": {"vmSku": H100, "count": 1}, "c": {"vmSku": H100, "count": 2}}
    placements = load({"pools": pools, "workloads": "nccl-allreduce,training"}).placements
    assert {name: placed.pool_key for name, placed in placements.items()} == {"nccl-allreduce": "b", "training": "c"}


def test_a_workload_passes_over_pools_that_would_not_do() -> None:
    pools = {"a": {"vmSku": T4}, "b": {"vmSku": H100, "count": 1}, "c": {"vmSku": H100}}
    stack = {**MIXED, "pools": pools, "workloads": "picky"}
    assert load(stack, known=PICKY).placements["picky"].pool_key == "c"
    (problem,) = refused({**stack, "pools": {"a": {"vmSku": T4}}}, known=PICKY)
    assert problem.what == "is wrong on a"


@pytest.mark.parametrize("workload", ["metaseq", "nccl-allreduce", "olmo", "health-check"])
def test_two_nodes_of_the_pool_with_infiniband_are_taken(workload: str) -> None:
    pools = {"a": {"vmSku": "Standard_NC96ads_A100_v4"}, "h": {"vmSku": H100}}
    options = {workload: {"numNodes": 2}}
    stack = {**MIXED, **DATA, "pools": pools, "workloads": workload, "workloadOptions": options}
    expected = "a" if workload == "health-check" else "h"
    assert load(stack, known=workloads.find()).placements[workload].pool_key == expected


def test_olmo_passes_over_gpus_that_it_cannot_train_on() -> None:
    stack = {**MIXED, **DATA, "workloads": "olmo"}
    assert load(stack, known=workloads.find()).placements["olmo"].pool_key == "b"


@pytest.mark.parametrize("workload", ["metaseq", "nccl-allreduce", "olmo", "health-check"])
def test_pods_of_whole_nodes_need_what_offers_their_hcas(workload: str) -> None:
    off = {"networkOperator": {"enabled": False}}
    found = refused({**DATA, "vmSku": H100, "workloads": workload, "operators": off}, known=workloads.find())
    assert [problem.path for problem in found] == [("operators", "networkOperator", "enabled")]


def test_without_hcas_nothing_needs_to_offer_them() -> None:
    off = {"networkOperator": {"enabled": False}}
    assert load({"vmSku": T4, "workloads": "training", "operators": off}).placements
    assert load({"vmSku": H100, "workloads": "notebook", "operators": off}).placements, "it takes GPUs one by one"
    assert workloads.find()["jupyterlab"].requires.whole_nodes is False


def test_a_workload_takes_the_pool_that_it_is_told() -> None:
    stack = {"workloads": "notebook", "workloadOptions": {"notebook": {"pool": "b"}}}
    assert load({**stack, **MIXED}).placements["notebook"].pool_key == "b"


def test_nodes_of_a_workload_are_its_own() -> None:
    stack = {"vmSku": H100, "nodeCount": 8, "workloads": "nccl-allreduce,training"}
    nodes = {name: placed.nodes for name, placed in load(stack).placements.items()}
    assert nodes == {"nccl-allreduce": 8, "training": 2}
