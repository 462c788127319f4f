"""Checks of one's own, as aznhc's configuration has them: what is refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

import workloads
from config.facts.skus import catalogue
from config.problems.errors import SettingsError
from config.schema.models import Settings
from config.schema.pools import agent_pool_name
from tests.support.pools import A100, H100, T4, pool
from tests.support.settings import load
from workloads._aznhc import configuration
from workloads.health_check.lines import CHOSEN, faults, parsed

SEEDS = "* || check_nccl_allreduce 460.0 1 /azure-nhc/topofiles/ndv5-topo.xml 16G"
"""As Azure's guide has it (Pre-Job Health Checks on AKS)."""


def said(line: str, sku: str = H100) -> str:
    return "; ".join(what for what, _ in faults(pool(sku).sku, line))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (SEEDS, "has its third and fourth argument swapped"),
        ("check_gpu_bw 70 335", "asks for 70 GB/s from host to GPU, and a healthy Standard_ND96isr_H100_v5 reaches 64"),
        ("check_gpu_bw 48 500", "asks for 500 GB/s from GPU to GPU"),
        ("check_ib_bw_gdr 400", "asks for 400 Gb/s by an HCA, and a healthy Standard_ND96isr_H100_v5 reaches 396"),
        ("check_hw_physmem 9999999MB 9999999MB 5%", "has no limit of one's own"),
        ("check_nvme_count 80", "has no limit of one's own"),
        ("check_nccl_allreduce 600 1 16G", "GB/s of bus bandwidth, and a healthy Standard_ND96isr_H100_v5 reaches"),
        ("check_nccl_allreduce 460", "has 1 arguments"),
        ("check_ib_bw_gdr fast", "has fast for a limit"),
        ("check_ib_bw_gdr -1", "has a limit of -1"),
        ("check_hw_ib 400 mlx5_ib0:1", "mlx5_ib0 and the like are names outside AKS"),
        ("check_hw_ib 200 mlx5_0:1", "takes the rate of a link, which is 400 Gb/s"),
        ("check_gpu_count 4", "nodes of Standard_ND96isr_H100_v5 have 8"),
        ("check_gpu_cuont 8", "is no check of aznhc that fits AKS; near: check_gpu_count"),
        ("check_ib_link_flapping soon", "takes whole hours"),
    ],
)
def test_what_no_healthy_node_could_pass_is_refused(line: str, why: str) -> None:
    assert why in said(line)


def test_infiniband_is_not_checked_where_there_is_none() -> None:
    assert "which Standard_NC4as_T4_v3 does not have" in said("check_ib_bw_gdr 100", T4)


@pytest.mark.parametrize("name", [size.name for size in catalogue().values() if size.gpus and size.supported])
def test_what_is_generated_is_never_refused(name: str) -> None:
    text = configuration(catalogue()[name], "/opt/topology.xml")
    lines = [line for line in text.splitlines() if "||" in line and parsed(line)[0] in CHOSEN]
    assert lines
    assert not [line for line in lines if said(line, name)]


def test_a_check_of_ones_own_takes_the_place_of_its_name() -> None:
    text = configuration(pool(A100).sku, "/opt/t.xml", own=[parsed("* || check_ib_bw_gdr 190")])
    assert [line for line in text.splitlines() if "check_ib_bw_gdr" in line] == [" * || check_ib_bw_gdr 190"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"checks": [SEEDS]}, "third and fourth argument swapped"),
        ({"checks": ["check_ib_bw_gdr 390"], "leaveOut": ["check_ib_bw_gdr"]}, "is left out by leaveOut"),
        ({"nodeNames": ["node-1"]}, "is 'node-1', no node of pool"),
        ({"nodeNames": ["{}1", "{}1"]}, "a second time"),
        ({"nodeNames": ["{}1"], "numNodes": 2}, "is 2, but 1 nodes are named"),
    ],
)
def test_the_stack_that_asks_for_it_is_told(options: dict[str, Any], why: str) -> None:
    placed = loaded({}).placements["health-check"]
    prefix = f"aks-{agent_pool_name(placed.pool_key, placed.pool)}-"
    named = {"nodeNames": [name.format(prefix) for name in options.get("nodeNames", [])]}
    with pytest.raises(SettingsError) as caught:
        loaded({**options, **named})
    assert [problem for problem in caught.value.problems if why in str(problem)]


def loaded(options: dict[str, Any]) -> Settings:
    stack = {"vmSku": H100, "workloads": "health-check", "workloadOptions": {"health-check": options}}
    return load(stack, known=workloads.find())
