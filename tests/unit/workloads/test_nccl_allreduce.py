from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from config.data.skus import catalogue, sku, topologies
from tests.support.case_files import case_table
from tests.support.pools import place, pool
from tests.support.sizes import H100
from workloads import find
from workloads._lib.files import affinity_mask, topology_xml
from workloads.nccl_allreduce.manifests import Run, files, floor_gbs, job
from workloads.nccl_allreduce.options import NcclAllreduceOptions


def run(vm_sku: str = H100, nodes: int = 2, **options: Any) -> Run:
    return Run(options=NcclAllreduceOptions(**options), service_account="mpi", **place(vm_sku, nodes))


def test_sharp_sets_one_variable() -> None:
    assert job(run()).environment()["NCCL_COLLNET_ENABLE"] == "1"
    assert not [name for name in job(run(sharp=False)).environment() if "SHARP" in name or "COLLNET" in name]


def test_the_default_floor_depends_on_size_nodes_and_sharp() -> None:
    size = sku(H100)
    assert floor_gbs(run(nodes=1)) == size.busbw_floor(1)
    assert floor_gbs(run(nodes=2, sharp=False)) == size.busbw_floor(2, sharp=False)
    assert floor_gbs(run(nodes=8)) == size.busbw_floor(8, sharp=True)
    assert floor_gbs(run(floor_gbs=123.5)) == 123.5
    assert job(run(floor_gbs=123.5)).environment()["BUSBW_FLOOR_GBS"] == "123.5"


def test_the_expected_bandwidth_depends_on_size_nodes_and_sharp() -> None:
    assert job(run(nodes=2)).environment()["BUSBW_EXPECTED_GBS"] == "450"
    assert job(run(nodes=8, sharp=False)).environment()["BUSBW_EXPECTED_GBS"] == "368"
    assert job(run("Standard_ND96asr_v4", nodes=2)).environment()["BUSBW_EXPECTED_GBS"] == "187"


def test_every_infiniband_size_has_a_floor_and_a_topology() -> None:
    for size in catalogue().values():
        if size.infiniband and size.supported:
            assert floor_gbs(run(size.name)) > 0
            assert "topology.xml" in files(pool(size.name)).contents


def test_finds_every_workload_by_its_name() -> None:
    found = find()
    assert found["nccl-allreduce"].requires.infiniband
    assert all(name == workload.name for name, workload in found.items())


@case_table(__file__, "masks")
def test_affinity_masks(cpus: list[int], mask: str) -> None:
    assert affinity_mask(*cpus) == mask


@pytest.mark.parametrize("name", ["ndv5", "ndv4"])
def test_every_hca_shares_a_bridge_with_a_gpu(name: str) -> None:
    system = ElementTree.fromstring(topology_xml(topologies()[name]))  # noqa: S314  our own text
    bridges = system.findall("cpu/pci")
    assert [bridge.get("busid") for bridge in bridges] == [f"ffff:ff:{i:02x}.0" for i in range(1, len(bridges) + 1)]
    for bridge in bridges:
        classes = [device.get("class") for device in bridge]
        assert classes.count("0x030200") == classes.count("0x020700") == len(classes) / 2


@pytest.mark.parametrize(("name", "cpus", "bridges"), [("ndv5", 2, 8), ("ndv4", 4, 4)])
def test_topologies_have_numa_nodes_bridges_and_gpus(name: str, cpus: int, bridges: int) -> None:
    system = ElementTree.fromstring(topology_xml(topologies()[name]))  # noqa: S314  our own text
    assert len(system.findall("cpu")) == cpus
    assert len(system.findall("cpu/pci")) == bridges
    gpus = [d.get("busid", "") for d in system.iter("pci") if d.get("class") == "0x030200"]
    assert len(gpus) == len(set(gpus)) == 8
    assert (system.find("cpu/pci").get("vendor") is not None) == (name == "ndv5")  # type: ignore[union-attr]
