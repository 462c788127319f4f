"""Each workload is placed on a pool that will do, or told what is missing there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import workloads
from config.problems.errors import Problem, SettingsError
from config.problems.fixes import say
from config.schema.workload import Ground, Requirements
from tests.support.settings import A100, H100, T4, Workload, load, platform

MIXED = {
    "pools": {"a": {"vmSku": T4}, "b": {"vmSku": H100}},
    "operators": {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}},
}
"""Pools with and without InfiniBand."""
TRAIN, DEV = {"vmSku": H100}, {"vmSku": A100, "spot": True}
"""Two nodes of 8 GPUs each, on-demand and with InfiniBand; two Spot nodes of one GPU."""
FOUR_GPUS = "Standard_NC96ads_A100_v4"
SMALL_GPUS = "Standard_ND96asr_v4"
"""InfiniBand, and GPUs of 40 GB."""
BURST = {"vmSku": H100, "autoscale": {"min": 0, "max": 4}}
PASSWORD = {"password": "open-sesame"}
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
        yield Problem((*ground.pool_path, "vmSku"), f"is wrong on {ground.pool_key}", "", say("choose c"))


PICKY = {"picky": Workload("picky", Requirements(), problem=only_on_c)}
"""A workload that is content with one pool only."""


def refused(stack: Mapping[str, Any], **options: Any) -> list[Problem]:
    with pytest.raises(SettingsError) as caught:
        load(stack, **options)
    return list(caught.value.problems)


Placed = dict[str, tuple[str, int, int]]
"""Pool, nodes and GPUs of each job."""


def placed(pools: Mapping[str, Any], workload: str, **options: Any) -> Placed:
    """Where a workload of this repository goes on a stack with these pools."""
    stack = {**DATA, "pools": pools, "workloads": workload, "workloadOptions": {workload: options}}
    gpu_operator = {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}}
    settings = load(stack | {"operators": gpu_operator}, known=workloads.find(), secret=("workloadOptions",))
    return {name: (each.pool_key, each.nodes, each.gpus) for name, each in settings.placements.items()}


@pytest.mark.parametrize(
    ("pools", "workload", "options", "expected"),
    [
        # What it asks for comes first: InfiniBand, ...
        ({"aaa": DEV, "train": TRAIN}, "nccl-allreduce", {}, ("train", 2, 16)),
        ({"dev": {"vmSku": FOUR_GPUS, "count": 9}, "spot": {**TRAIN, "spot": True}}, "metaseq", {"numNodes": 2},
         ("spot", 2, 16)),
        ({"a": {"vmSku": FOUR_GPUS}, "h": TRAIN}, "olmo", {"numNodes": 2}, ("h", 2, 16)),
        # ... nodes, ...
        ({"a": {**TRAIN, "count": 0}, "b": {**TRAIN, "count": 1}}, "nccl-allreduce", {}, ("b", 1, 8)),
        ({"a": {**TRAIN, "count": 1}, "b": {**TRAIN, "spot": True}}, "nccl-allreduce", {"numNodes": 2}, ("b", 2, 16)),
        ({"a": BURST, "b": {**TRAIN, "spot": True}}, "olmo", {}, ("b", 1, 8)),
        ({"a": BURST, "b": {**TRAIN, "spot": True}}, "olmo", {"numNodes": 4}, ("a", 4, 32)),
        # ... GPUs of a node, ...
        ({"aaa": DEV, "train": TRAIN}, "jupyterlab", {**PASSWORD, "gpus": 2}, ("train", 1, 2)),
        # ... their memory, and what else it alone knows.
        ({"a": {"vmSku": SMALL_GPUS, "count": 4}, "h": {**TRAIN, "spot": True}}, "metaseq",
         {"modelSize": "66b", "numNodes": 2}, ("h", 2, 16)),
        ({"a": {"vmSku": SMALL_GPUS, "count": 4}, "h": {**TRAIN, "spot": True}}, "olmo",
         {"config": "OLMo2-7B"}, ("h", 1, 8)),
        ({"a": {"vmSku": T4, "count": 20}, "h": {**TRAIN, "spot": True}}, "olmo", {}, ("h", 1, 8)),
        ({"a": {"vmSku": A100, "count": 3}, "b": {"vmSku": FOUR_GPUS, "count": 1}}, "metaseq", {}, ("b", 1, 4)),
        ({"a": {"vmSku": T4, "gpuSlices": 2}}, "jupyterlab", {**PASSWORD, "gpus": 2}, ("a", 1, 2)),
        ({"a": {"vmSku": FOUR_GPUS, "migProfile": "all-1g.10gb"}, "b": {"vmSku": A100, "spot": True}}, "olmo", {},
         ("b", 1, 1)),
        # Then on-demand, ...
        ({"aaa": {**TRAIN, "spot": True, "count": 9}, "train": TRAIN}, "nccl-allreduce", {}, ("train", 2, 16)),
        ({"aaa": DEV, "train": TRAIN}, "jupyterlab", PASSWORD, ("train", 1, 0)),
        ({"h": TRAIN, "t": DEV}, "jupyterlab", {**PASSWORD, "gpus": 1}, ("h", 1, 1)),
        # ... then nodes that no other job needs whole, ...
        ({"h": TRAIN, "t": {"vmSku": T4}}, "jupyterlab", {**PASSWORD, "gpus": 1}, ("t", 1, 1)),
        ({"a": {"vmSku": FOUR_GPUS, "gpuSlices": 4}, "b": {"vmSku": A100}}, "olmo", {}, ("b", 1, 1)),
        # ... then most GPUs: its own, and those of the pool.
        ({"a": TRAIN, "b": {**TRAIN, "count": 3}}, "nccl-allreduce", {}, ("b", 3, 24)),
        ({"a": {"vmSku": A100, "count": 50}, "b": {"vmSku": FOUR_GPUS, "count": 1}}, "olmo", {}, ("b", 1, 4)),
        ({"dev": DEV, "train": TRAIN}, "olmo", {}, ("train", 1, 8)),
        ({"a": {"vmSku": T4}, "b": {"vmSku": T4, "count": 3}}, "jupyterlab", {**PASSWORD, "gpus": 1}, ("b", 1, 1)),
        # What is said holds, whatever is better.
        ({"dev": DEV, "train": TRAIN}, "olmo", {"pool": "dev"}, ("dev", 1, 1)),
        ({"aaa": DEV, "train": TRAIN}, "health-check", {"pool": "aaa"}, ("aaa", 2, 2)),
        ({"a": BURST, "b": TRAIN}, "nccl-allreduce", {"pool": "a", "numNodes": 3}, ("a", 3, 24)),
    ],
)  # fmt: skip
def test_a_workload_takes_the_pool_that_it_would_choose_itself(
    pools: Mapping[str, Any], workload: str, options: Mapping[str, Any], expected: tuple[str, int, int]
) -> None:
    assert placed(pools, workload, **options) == {workload: expected}


@pytest.mark.parametrize(
    ("pools", "options", "expected"),
    [
        ({"gpu": TRAIN}, {}, {"health-check": ("gpu", 2, 16)}),
        ({"dev": DEV, "train": TRAIN}, {}, {"health-check-dev": ("dev", 2, 2), "health-check-train": ("train", 2, 16)}),
        ({"burst": BURST}, {}, {"health-check": ("burst", 1, 8)}),
        ({"burst": BURST, "train": TRAIN}, {}, {"health-check-train": ("train", 2, 16)}),
        ({"idle": {**TRAIN, "count": 0}, "train": TRAIN}, {}, {"health-check-train": ("train", 2, 16)}),
        ({"a": {**TRAIN, "count": 1}, "b": TRAIN}, {"numNodes": 2}, {"health-check-b": ("b", 2, 16)}),
        ({"a": BURST, "b": TRAIN}, {"numNodes": 3}, {"health-check-a": ("a", 3, 24)}),
    ],
)
def test_a_health_check_takes_every_pool_that_has_nodes_for_certain(
    pools: Mapping[str, Any], options: Mapping[str, Any], expected: Placed
) -> None:
    assert placed(pools, "health-check", **options) == expected


@pytest.mark.parametrize("workload", ["health-check", "nccl-allreduce"])
def test_nodes_that_only_the_autoscaler_may_bring_are_not_counted_on(workload: str) -> None:
    """A gang of them would wait for as long as Azure has not all at once."""
    pool = {"vmSku": H100, "autoscale": {"min": 2, "max": 9}}
    assert placed({"gpu": pool}, workload) == {workload: ("gpu", 2, 16)}
    assert placed({"gpu": pool}, workload, numNodes=9) == {workload: ("gpu", 9, 72)}, "but when asked for"


def test_pools_of_another_stack_s_platform_are_chosen_from_in_the_same_way() -> None:
    others = {"dev": platform({**MIXED, "pools": {"aaa": DEV, "train": TRAIN}})}
    lodger = {"platformStack": "dev", "workloads": "health-check,nccl-allreduce"}
    settings = load(lodger, name="jobs", others=others, known=workloads.find())
    assert {name: (each.pool_key, each.nodes) for name, each in settings.placements.items()} == {
        "health-check-aaa": ("aaa", 2),
        "health-check-train": ("train", 2),
        "nccl-allreduce": ("train", 2),
    }


def test_previews_tell_where_each_workload_runs_and_on_how_much() -> None:
    names = "health-check,jupyterlab"
    stack = {**MIXED, "pools": {"dev": {**DEV, "count": 1}, "train": TRAIN}, "workloads": names}
    options = {"workloadOptions": {"jupyterlab": PASSWORD}}
    found = load(stack | options, known=workloads.find(), secret=("workloadOptions",)).placements.values()
    assert sorted(map(str, found)) == [
        "health-check-dev: 1 node of Spot pool dev, 1 GPU (Standard_NC24ads_A100_v4)",
        "health-check-train: 2 nodes of pool train, 16 GPUs (Standard_ND96isr_H100_v5)",
        "jupyterlab: 1 node of pool train, no GPU (Standard_ND96isr_H100_v5)",
    ]


@pytest.mark.parametrize(
    ("pools", "options", "fix"),
    [
        ({"gpu": TRAIN}, {"gpus": 9}, "pulumi config set --path workloadOptions.jupyterlab.gpus 8"),
        ({"dev": DEV, "train": TRAIN}, {"gpus": 9}, "pulumi config set --path workloadOptions.jupyterlab.gpus 8"),
        ({"dev": DEV, "train": TRAIN}, {"gpus": 2, "pool": "dev"},
         "pulumi config set --path workloadOptions.jupyterlab.gpus 1"),
    ],
)  # fmt: skip
def test_more_gpus_than_a_node_has_are_refused(pools: Mapping[str, Any], options: Mapping[str, Any], fix: str) -> None:
    stack = {**MIXED, "pools": pools, "workloads": "jupyterlab"}
    chosen = {"workloadOptions": {"jupyterlab": {**PASSWORD, **options}}}
    (problem,) = refused(stack | chosen, known=workloads.find(), secret=("workloadOptions",))
    assert problem.fix == fix


def test_a_model_is_refused_on_a_pool_whose_gpus_cannot_hold_it() -> None:
    pools = {"small": {"vmSku": SMALL_GPUS, "count": 2}, "train": TRAIN}
    options = {"metaseq": {"pool": "small", "numNodes": 2}}
    stack = {"pools": pools, "workloads": "metaseq", "modelSize": "66b", "workloadOptions": options}
    (problem,) = refused(stack, known=workloads.find())
    assert problem.what.startswith(f"is 66b, which needs 4 nodes of {SMALL_GPUS}: with 2, each GPU would need ")


def test_a_workload_passes_over_pools_that_would_not_do() -> None:
    pools = {"a": {"vmSku": T4}, "b": {"vmSku": H100, "count": 1}, "c": {"vmSku": H100}}
    stack = {**MIXED, "pools": pools, "workloads": "picky"}
    assert load(stack, known=PICKY).placements["picky"].pool_key == "c"
    (problem,) = refused({**stack, "pools": {"a": {"vmSku": T4}}}, known=PICKY)
    assert problem.what == "is wrong on a"


@pytest.mark.parametrize("workload", ["metaseq", "nccl-allreduce", "olmo", "health-check"])
def test_pods_of_whole_nodes_need_what_offers_their_hcas(workload: str) -> None:
    off = {"networkOperator": {"enabled": False}}
    found = refused({**DATA, "vmSku": H100, "workloads": workload, "operators": off}, known=workloads.find())
    assert [problem.path for problem in found] == [("operators", "networkOperator", "enabled")]


def test_without_hcas_nothing_needs_to_offer_them() -> None:
    off = {"networkOperator": {"enabled": False}}
    assert load({"vmSku": T4, "workloads": "training", "operators": off}).placements
    assert load({"vmSku": H100, "workloads": "notebook", "operators": off}).placements, "it takes GPUs one by one"


def test_nodes_of_a_workload_are_its_own() -> None:
    stack = {"vmSku": H100, "nodeCount": 8, "workloads": "nccl-allreduce,training"}
    nodes = {name: placed.nodes for name, placed in load(stack).placements.items()}
    assert nodes == {"nccl-allreduce": 8, "training": 2}
