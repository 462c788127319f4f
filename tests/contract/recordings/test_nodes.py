from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.allocatable import allocatable
from config.data.skus import sku
from k8s.quantities import count, value
from simulator.azure.types.agent_pool import os_disks
from simulator.azure.types.agent_pool.nodes import Pool, manifests
from tests.support.arm import pool_path

RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("nodes.yaml").read_text("utf-8"))
NODES: dict[str, dict[str, Any]] = RECORDED["nodes"]
LINUX: dict[str, int] = RECORDED["linux_memory"]["kib"] | {
    node["size"]: count(node["capacity"]["memory"]) // 1024 for node in NODES.values() if "capacity" in node
}
SHARE = 0.01
"""The allowed relative difference of memory; kernels and firmware differ."""


def simulated(node: dict[str, Any]) -> dict[str, Any]:
    defaults = {"mode": "User", "osSKU": "Ubuntu", "osDiskType": "Managed", "osDiskSizeGB": 128, "maxPods": 250}
    pool = Pool(
        id=pool_path("pool"),
        name="pool",
        properties=defaults | node.get("pool", {}),
        location="eastus",
        node_group="MC_rg_aks_eastus",
        kubernetes=node.get("kubernetes", "1.33.6"),
        index=0,
        instances=(0,),
    )
    return manifests(pool, sku(node["size"]))[0]


def recorded(*keys: str) -> list[str]:
    return [name for name, node in NODES.items() if all(key in node for key in keys)]


@pytest.mark.parametrize("name", recorded("allocatable", "kubernetes"))
def test_the_program_assumes_at_most_the_memory_that_a_node_offers(name: str) -> None:
    node = NODES[name]
    left, offered = allocatable(sku(node["size"]), int(node["capacity"]["pods"])), node["allocatable"]
    assert 0.96 * count(offered["memory"]) <= left.memory_kib * 1024 <= count(offered["memory"])


@pytest.mark.parametrize("name", recorded("allocatable"))
def test_program_and_simulator_have_the_allocatable_cpu_of_nodes(name: str) -> None:
    node = NODES[name]
    offered, left = value(node["allocatable"]["cpu"]), allocatable(sku(node["size"]), int(node["capacity"]["pods"]))
    shown = simulated(node)["status"]["allocatable"]["cpu"]
    assert left.cpu_millis == offered * 1000
    assert value(shown) == offered


@pytest.mark.parametrize("name", sorted(LINUX))
def test_the_program_assumes_at_least_99_percent_of_a_large_nodes_memory(name: str) -> None:
    nominal = sku(name).memory_gib * 1024**2
    kept = min((20 * 250 + 50) * 1024, nominal // 4) + 100 * 1024
    assert allocatable(sku(name)).memory_kib + kept <= LINUX[name]
    assert nominal < 200 * 1024**2 or allocatable(sku(name)).memory_kib + kept >= 0.99 * LINUX[name]


@pytest.mark.parametrize("name", recorded("allocatable", "kubernetes"))
def test_simulated_nodes_have_recorded_capacity_and_allocatable(name: str) -> None:
    node, status = NODES[name], simulated(NODES[name])["status"]
    for key, shown in (("capacity", status["capacity"]), ("allocatable", status["allocatable"])):
        assert {each: shown[each] for each in ("cpu", "pods") if each in node[key]} == {
            each: node[key][each] for each in ("cpu", "pods") if each in node[key]
        }
        assert count(shown["memory"]) == pytest.approx(count(node[key]["memory"]), rel=SHARE)


@pytest.mark.parametrize("name", sorted(LINUX))
def test_simulated_nodes_have_the_memory_of_linux(name: str) -> None:
    shown = simulated({"size": name})["status"]["capacity"]["memory"]
    assert count(shown) == pytest.approx(LINUX[name] * 1024, rel=SHARE)


@pytest.mark.parametrize("name", recorded("default_os_disk_gb"))
def test_pools_without_an_os_disk_get_akss_default_size(name: str) -> None:
    properties: dict[str, Any] = {}
    os_disks.fill(properties, sku(NODES[name]["size"]))
    assert properties == {"osDiskType": "Ephemeral", "osDiskSizeGB": NODES[name]["default_os_disk_gb"]}


@pytest.mark.parametrize("name", recorded("labels"))
def test_simulated_nodes_have_recorded_labels(name: str) -> None:
    shown, node = simulated(NODES[name])["metadata"]["labels"], NODES[name]
    assert {key: shown.get(key) for key in node["labels"]} == node["labels"]


@pytest.mark.parametrize("name", recorded("names"))
def test_simulated_nodes_have_no_other_labels(name: str) -> None:
    shown, node = simulated(NODES[name])["metadata"]["labels"], NODES[name]
    assert set(shown) == {*node["labels"], *node["names"]}
