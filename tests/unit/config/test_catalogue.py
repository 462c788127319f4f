from __future__ import annotations

import pytest

from config.data.allocatable import allocatable, reserved_cpu_millis, reserved_memory_kib
from config.data.skus import VmSku, catalogue, gpu_models, nccl_profiles, sku, topologies
from tests.support.case_files import read

EXPECTED = read(__file__, "catalogue")
GPU_SIZES = [size for size in catalogue().values() if size.gpus]
FABRIC_SIZES = [size for size in GPU_SIZES if size.infiniband and size.supported]


def summary(size: VmSku) -> list[object]:
    fabric = [size.infiniband.hcas, size.infiniband.gbps] if size.infiniband else None
    disks = size.nvme.count if size.nvme else 0
    return [size.gpus, size.gpu_model, size.gpu_memory_gb, fabric, size.vcpus, size.memory_gib, size.temp_gib, disks]


def test_gpu_sizes() -> None:
    assert {size.name: summary(size) for size in GPU_SIZES} == EXPECTED["GPUs"]


def test_sizes_without_gpus() -> None:
    found = {name: sku(name) for name in EXPECTED["no GPUs"]}
    shown = {name: [size.vcpus, size.memory_gib, size.temp_gib] for name, size in found.items()}
    assert shown == EXPECTED["no GPUs"]
    assert not any(size.gpus for size in found.values())


@pytest.mark.parametrize("size", GPU_SIZES, ids=lambda size: size.name)
def test_gpu_sizes_are_complete(size: VmSku) -> None:
    assert size.gpu_vendor in {"nvidia", "amd"}
    assert len(size.gpu_pci_device) == 4
    assert size.gpu_product
    assert size.supported == (size.nccl is not None)
    assert size.nccl is None or size.nccl in nccl_profiles()
    known = size.gpu_vendor == "amd" or size.gpu_model in gpu_models()
    assert known or not size.supported, f"config/data/skus.yaml has no {size.gpu_model} among its gpu_models"


@pytest.mark.parametrize("size", FABRIC_SIZES, ids=lambda size: size.name)
def test_the_topology_has_all_devices(size: VmSku) -> None:
    assert size.infiniband
    assert size.topology
    pairs = [pair for node in topologies()[size.topology].numa for bridge in node.bridges for pair in bridge]
    assert len({gpu for gpu, _ in pairs}) == size.gpus
    assert len({hca for _, hca in pairs}) == size.infiniband.hcas


@pytest.mark.parametrize("name", topologies())
def test_the_topology_assigns_each_cpu_to_one_numa_node(name: str) -> None:
    cpus = [cpu for node in topologies()[name].numa for cpu in range(node.cpus[0], node.cpus[1] + 1)]
    (vcpus,) = {size.vcpus for size in FABRIC_SIZES if size.topology == name}
    assert cpus == list(range(vcpus))


@pytest.mark.parametrize("size", FABRIC_SIZES, ids=lambda size: size.name)
@pytest.mark.parametrize("nodes", [1, 2, 3, 64])
@pytest.mark.parametrize("sharp", [False, True])
def test_floors_are_below_healthy_values_and_line_rate(size: VmSku, nodes: int, sharp: bool) -> None:
    assert size.nccl_busbw
    assert size.infiniband
    floor = size.busbw_floor(nodes, sharp=sharp)
    assert floor
    assert floor < size.nccl_busbw.healthy.at(nodes, sharp=sharp)
    if nodes > 1 and not (sharp and size.infiniband.sharp):
        assert floor <= size.infiniband.hcas * size.infiniband.gbps / 8


def test_sharp_counts_only_if_the_fabric_supports_it() -> None:
    assert sku("Standard_ND96isr_H100_v5").busbw_floor(8, sharp=True) == 400
    assert sku("Standard_ND96asr_v4").busbw_floor(8, sharp=True) == sku("Standard_ND96asr_v4").busbw_floor(8) == 170
    assert sku("Standard_NC4as_T4_v3").busbw_floor(2) is None


def test_nccl_profiles_contain_no_setting_that_breaks_jobs() -> None:
    for profile in nccl_profiles().values():
        environment = profile.environment(sharp=False)
        assert "NCCL_ALGO" not in environment
        assert "NCCL_COLLNET_ENABLE" not in environment
        assert environment["NCCL_DEBUG"] == "INFO", "only INFO prints the transport"


@pytest.mark.parametrize(("cores", "millis"), [(1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740)])
def test_reserved_cpu(cores: int, millis: int) -> None:
    assert reserved_cpu_millis(cores) == millis


def test_reserved_memory_is_at_most_a_quarter() -> None:
    assert reserved_memory_kib(4 * 1024**2, 250) == 1024**2 + 100 * 1024


def test_allocatable_resources_of_a_node() -> None:
    left = allocatable(sku("Standard_ND96isr_H100_v5"))
    assert left.cpu_millis == 96_000 - 1060
    assert left.memory_kib == (1900 * 1024 * 63 // 64 - 320 - 20 * 250 - 50 - 100) * 1024
