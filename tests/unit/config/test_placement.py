from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import workloads
from config.problems.errors import Problem
from config.problems.fixes import say
from config.schema.workload import Candidate, Requirements
from tests.support.case_files import case_table
from tests.support.settings import A100, Workload, load, platform, problems
from tests.support.sizes import H100, T4

MIXED = {
    "pools": {"a": {"vmSku": T4}, "b": {"vmSku": H100}},
    "operators": {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}},
}
TRAIN, DEV = {"vmSku": H100}, {"vmSku": A100, "spot": True}
"""Two nodes of 8 GPUs, on-demand and with InfiniBand; two Spot nodes of one GPU."""
SMALL_GPUS = "Standard_ND96asr_v4"
"""InfiniBand, and GPUs of 40 GB."""
PASSWORD = {"password": "open-sesame"}
DATA = {
    "storage": {
        "containers": {
            "olmo-data": {"permissions": "rl", "upload": True},
            "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
        }
    }
}


def only_on_c(_options: Any, candidate: Candidate) -> Iterator[Problem]:
    if candidate.pool_key != "c":
        yield Problem((*candidate.pool_path, "vmSku"), f"is wrong on {candidate.pool_key}", "", say("choose c"))


PICKY = {"picky": Workload("picky", Requirements(), problem=only_on_c)}


Placed = dict[str, list[Any]]
"""Each job's pool, nodes and GPUs."""


def placed(pools: Mapping[str, Any], workload: str, **options: Any) -> Placed:
    stack = {**DATA, "pools": pools, "workloads": workload, "workloadOptions": {workload: options}}
    gpu_operator = {"gpuOperator": {"values": {"driver": {"rdma": {"enabled": False}}}}}
    settings = load(stack | {"operators": gpu_operator}, known=workloads.find(), secret=("workloadOptions",))
    return {name: [each.pool_key, each.nodes, each.gpus] for name, each in settings.placements.items()}


@case_table(__file__, "chosen")
def test_chooses_the_best_pool(
    pools: Mapping[str, Any], workload: str, options: Mapping[str, Any], expected: list[Any]
) -> None:
    assert placed(pools, workload, **options) == {workload: expected}


@case_table(__file__, "health checks")
def test_a_health_check_runs_on_every_pool_with_certain_nodes(
    pools: Mapping[str, Any], options: Mapping[str, Any], expected: Placed
) -> None:
    assert placed(pools, "health-check", **options) == expected


@pytest.mark.parametrize("workload", ["health-check", "nccl-allreduce"])
def test_does_not_rely_on_nodes_of_the_autoscaler(workload: str) -> None:
    pool = {"vmSku": H100, "autoscale": {"min": 2, "max": 9}}
    assert placed({"gpu": pool}, workload) == {workload: ["gpu", 2, 16]}
    assert placed({"gpu": pool}, workload, numNodes=9) == {workload: ["gpu", 9, 72]}, "unless the user requests them"


def test_chooses_pools_of_another_stack() -> None:
    others = {"dev": platform({**MIXED, "pools": {"aaa": DEV, "train": TRAIN}})}
    consumer = {"platformStack": "dev", "workloads": "health-check,nccl-allreduce"}
    settings = load(consumer, name="jobs", others=others, known=workloads.find())
    assert {name: (each.pool_key, each.nodes) for name, each in settings.placements.items()} == {
        "health-check-aaa": ("aaa", 2),
        "health-check-train": ("train", 2),
        "nccl-allreduce": ("train", 2),
    }


@case_table(__file__, "too many GPUs")
def test_rejects_more_gpus_than_a_node_has(pools: Mapping[str, Any], options: Mapping[str, Any], fix: str) -> None:
    stack = {**MIXED, "pools": pools, "workloads": "jupyterlab"}
    chosen = {"workloadOptions": {"jupyterlab": {**PASSWORD, **options}}}
    (problem,) = problems(stack | chosen, known=workloads.find(), secret=("workloadOptions",))
    assert problem.fix == fix


def test_rejects_a_model_that_does_not_fit_the_gpus_of_a_pool() -> None:
    pools = {"small": {"vmSku": SMALL_GPUS, "count": 2}, "train": TRAIN}
    options = {"metaseq": {"pool": "small", "numNodes": 2}}
    stack = {"pools": pools, "workloads": "metaseq", "modelSize": "66b", "workloadOptions": options}
    (problem,) = problems(stack, known=workloads.find())
    assert problem.what.startswith(f"is 66b, which needs 4 nodes of {SMALL_GPUS}: with 2, each GPU would need ")


def test_skips_unsuitable_pools() -> None:
    pools = {"a": {"vmSku": T4}, "b": {"vmSku": H100, "count": 1}, "c": {"vmSku": H100}}
    stack = {**MIXED, "pools": pools, "workloads": "picky"}
    assert load(stack, known=PICKY).placements["picky"].pool_key == "c"
    (problem,) = problems({**stack, "pools": {"a": {"vmSku": T4}}}, known=PICKY)
    assert problem.what == "is wrong on a"


@pytest.mark.parametrize("workload", ["metaseq", "nccl-allreduce", "olmo", "health-check"])
def test_workloads_on_whole_nodes_need_the_network_operator(workload: str) -> None:
    off = {"networkOperator": {"enabled": False}}
    found = problems({**DATA, "vmSku": H100, "workloads": workload, "operators": off}, known=workloads.find())
    assert [problem.path for problem in found] == [("operators", "networkOperator", "enabled")]


def test_other_workloads_need_no_network_operator() -> None:
    off = {"networkOperator": {"enabled": False}}
    assert load({"vmSku": T4, "workloads": "training", "operators": off}).placements
    assert load({"vmSku": H100, "workloads": "notebook", "operators": off}).placements, "it takes single GPUs"


def test_each_workload_sets_its_number_of_nodes() -> None:
    stack = {"vmSku": H100, "nodeCount": 8, "workloads": "nccl-allreduce,training"}
    nodes = {name: placed.nodes for name, placed in load(stack).placements.items()}
    assert nodes == {"nccl-allreduce": 8, "training": 2}
