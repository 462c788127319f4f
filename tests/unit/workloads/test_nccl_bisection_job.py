from __future__ import annotations

import json
from typing import Any

import pytest

from config.data.skus import catalogue, sku, topologies
from config.schema.pools import PoolSettings
from config.schema.workload import Candidate
from tests.support.pools import A100, candidate, place, pool
from tests.support.sizes import H100
from workloads.nccl_bisection.manifests import Run, baselines, files, job
from workloads.nccl_bisection.options import NcclBisectionOptions, problems

ALONE = candidate(pool=PoolSettings(vm_sku=H100, count=1))


def run(vm_sku: str = H100, nodes: int = 8, **options: Any) -> Run:
    return Run(options=NcclBisectionOptions(**options), service_account="mpi", **place(vm_sku, nodes))


def test_the_master_has_the_baselines_of_the_size_without_sharp() -> None:
    found = job(run()).environment()
    assert json.loads(found["BASELINES"]) == {
        "floor": {"one": 460, "two": 360, "many": 340},
        "healthy": {"one": 476, "two": 384, "many": 368},
    }
    assert (found["HCAS"], found["BYTES"], found["NODES"]) == ("8", "17179869184", "8")
    assert not [name for name in found if "SHARP" in name or "COLLNET" in name]


def test_floor_gbs_sets_the_floor_of_groups_of_nodes() -> None:
    assert baselines(run(floor_gbs=300))["floor"] == {"one": 460, "two": 300, "many": 300}


def test_mounts_all_scripts() -> None:
    found = set(files(pool()).contents)
    assert found >= {"launch.sh", "hosts.sh", "infiniband.sh", "links.sh", "measure.sh", "node.sh", "worker.sh"}
    assert found >= {"search.py", "bisection.py", "report.py", "verdict.sh", "topology.xml"}


def test_the_gpu_and_the_hca_of_an_index_share_a_bridge() -> None:
    """A rail is the GPU and the HCA with one index, in the order of PCI domains."""
    for size in catalogue().values():
        if size.supported and size.infiniband and size.topology:
            bridges = [bridge for numa in topologies()[size.topology].numa for bridge in numa.bridges]
            gpus, hcas = (sorted(each) for each in zip(*(pair for bridge in bridges for pair in bridge), strict=True))
            assert size.gpus == size.infiniband.hcas == len(gpus)
            for gpu, hca in zip(gpus, hcas, strict=True):
                assert any({gpu, hca} <= {domain for pair in bridge for domain in pair} for bridge in bridges), (
                    size.name
                )


def test_accepts_the_defaults() -> None:
    assert list(problems(NcclBisectionOptions(), candidate(nodes=8))) == []
    assert list(problems(NcclBisectionOptions(floor_gbs=368), candidate(nodes=8))) == []


@pytest.mark.parametrize(
    ("options", "where", "what", "fix"),
    [
        (
            {"num_nodes": 1},
            ALONE,
            "a single node uses no link",
            "numNodes' 2",
        ),
        (
            {},
            ALONE,
            "nodeCount is 1, but workload nccl-bisection needs 2 nodes",
            "pulumi config set nodeCount <value>",
        ),
        (
            {"floor_gbs": 400},
            candidate(nodes=8),
            f"a healthy fabric of {H100} without SHARP reaches 368 GB/s",
            "floorGbs' 340",
        ),
        ({"floor_gbs": 385}, candidate(nodes=2), "without SHARP reaches 384 GB/s", "floorGbs' 360"),
        ({"floor_gbs": 190}, candidate(A100, 8), "at most 184; by default 170", "floorGbs' 170"),
    ],
)
def test_rejects_options_that_cannot_work(options: dict[str, Any], where: Candidate, what: str, fix: str) -> None:
    (problem,) = problems(NcclBisectionOptions(**options), where)
    assert what in str(problem)
    assert fix in problem.fix


def test_every_infiniband_size_has_baselines() -> None:
    for size in catalogue().values():
        if size.infiniband and size.supported:
            assert baselines(run(size.name))["floor"]["many"] < baselines(run(size.name))["healthy"]["many"]
    assert sku("Standard_NC4as_T4_v3").infiniband is None
