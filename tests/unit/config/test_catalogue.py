"""The catalogue is complete and agrees with what is known of the hardware."""

from __future__ import annotations

import pytest

from config.data.skus import UnknownSku, VmSku, catalogue, gpu_models, nccl_profiles, sku, topologies

# name: GPUs, GPU model and GB, HCAs x Gb/s, vCPUs, GiB, temporary GiB, NVMe disks. From Azure's size pages.
EXPECTED = {
    "Standard_ND96isr_H100_v5": (8, "H100", 80, (8, 400), 96, 1900, 1024, 8),
    "Standard_ND96isr_H200_v5": (8, "H200", 141, (8, 400), 96, 1850, 1024, 8),
    "Standard_ND96asr_v4": (8, "A100", 40, (8, 200), 96, 900, 6000, 0),
    "Standard_ND96amsr_A100_v4": (8, "A100", 80, (8, 200), 96, 1800, 6400, 0),  # 1900 on the page (skus.yaml)
    "Standard_ND96isr_MI300X_v5": (8, "MI300X", 192, (8, 400), 96, 1850, 1000, 8),
    "Standard_ND128isr_NDR_GB200_v6": (4, "GB200", 192, (4, 400), 128, 864, 0, 4),  # 900 on the page (skus.yaml)
    "Standard_ND128isr_GB300_v6": (4, "GB300", 288, (4, 800), 128, 864, 0, 4),
    "Standard_ND128isrG5_GB300_v6": (4, "GB300", 288, (4, 800), 128, 864, 0, 4),
    "Standard_NC24ads_A100_v4": (1, "A100", 80, None, 24, 220, 64, 0),
    "Standard_NC48ads_A100_v4": (2, "A100", 80, None, 48, 440, 128, 0),
    "Standard_NC96ads_A100_v4": (4, "A100", 80, None, 96, 880, 256, 0),
    "Standard_NC40ads_H100_v5": (1, "H100", 94, None, 40, 320, 3576, 0),
    "Standard_NC80adis_H100_v5": (2, "H100", 94, None, 80, 640, 7152, 0),
    "Standard_NC4as_T4_v3": (1, "T4", 16, None, 4, 28, 176, 0),
    "Standard_NC8as_T4_v3": (1, "T4", 16, None, 8, 56, 352, 0),
    "Standard_NC16as_T4_v3": (1, "T4", 16, None, 16, 110, 352, 0),
    "Standard_NC64as_T4_v3": (4, "T4", 16, None, 64, 440, 2816, 0),
}
# name: vCPUs, GiB, temporary GiB. From Azure's size pages.
EXPECTED_WITHOUT_GPUS = {
    "Standard_D2s_v3": (2, 8, 16),
    "Standard_D4ads_v5": (4, 16, 150),
    "Standard_D16ads_v5": (16, 64, 600),
    "Standard_D8s_v5": (8, 32, 0),
    "Standard_D8s_v6": (8, 32, 0),
    "Standard_D192s_v6": (192, 768, 0),
    "Standard_D2ds_v6": (2, 8, 110),
    "Standard_D48ds_v6": (48, 192, 2640),
    "Standard_D128ds_v6": (128, 512, 7040),
    "Standard_D96as_v6": (96, 384, 0),
    "Standard_D96ads_v6": (96, 384, 5280),
    "Standard_E64ads_v6": (64, 512, 3520),
    "Standard_D160ads_v7": (160, 640, 8800),
}
GPU_SIZES = [size for size in catalogue().values() if size.gpus]
FABRIC_SIZES = [size for size in GPU_SIZES if size.infiniband and size.supported]


def summary(size: VmSku) -> tuple[object, ...]:
    fabric = (size.infiniband.hcas, size.infiniband.gbps) if size.infiniband else None
    disks = size.nvme.count if size.nvme else 0
    return (size.gpus, size.gpu_model, size.gpu_memory_gb, fabric, size.vcpus, size.memory_gib, size.temp_gib, disks)


def test_gpu_sizes_are_those_that_are_known() -> None:
    assert {size.name: summary(size) for size in GPU_SIZES} == EXPECTED


def test_sizes_without_gpus_are_by_vcpu() -> None:
    found = {name: sku(name) for name in EXPECTED_WITHOUT_GPUS}
    shown = {name: (size.vcpus, size.memory_gib, size.temp_gib) for name, size in found.items()}
    assert shown == EXPECTED_WITHOUT_GPUS
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
def test_infiniband_sizes_have_a_topology_of_their_devices(size: VmSku) -> None:
    assert size.infiniband
    assert size.topology
    pairs = [pair for node in topologies()[size.topology].numa for bridge in node.bridges for pair in bridge]
    assert len({gpu for gpu, _ in pairs}) == size.gpus
    assert len({hca for _, hca in pairs}) == size.infiniband.hcas


@pytest.mark.parametrize("name", topologies())
def test_topologies_give_every_cpu_to_one_numa_node(name: str) -> None:
    cpus = [cpu for node in topologies()[name].numa for cpu in range(node.cpus[0], node.cpus[1] + 1)]
    (vcpus,) = {size.vcpus for size in FABRIC_SIZES if size.topology == name}
    assert cpus == list(range(vcpus))


@pytest.mark.parametrize("size", FABRIC_SIZES, ids=lambda size: size.name)
@pytest.mark.parametrize("nodes", [1, 2, 3, 64])
@pytest.mark.parametrize("sharp", [False, True])
def test_a_healthy_fabric_passes_and_no_floor_is_beyond_the_wire(size: VmSku, nodes: int, sharp: bool) -> None:
    assert size.nccl_busbw
    assert size.infiniband
    floor = size.busbw_floor(nodes, sharp=sharp)
    assert floor
    assert floor < size.nccl_busbw.healthy.at(nodes, sharp=sharp)
    if nodes > 1 and not (sharp and size.infiniband.sharp):
        assert floor <= size.infiniband.hcas * size.infiniband.gbps / 8


def test_sharp_counts_only_where_the_fabric_has_it() -> None:
    assert sku("Standard_ND96isr_H100_v5").busbw_floor(8, sharp=True) == 400
    assert sku("Standard_ND96asr_v4").busbw_floor(8, sharp=True) == sku("Standard_ND96asr_v4").busbw_floor(8) == 170
    assert sku("Standard_NC4as_T4_v3").busbw_floor(2) is None


def test_nccl_settings_leave_out_what_breaks_jobs() -> None:
    for profile in nccl_profiles().values():
        environment = profile.environment(sharp=False)
        assert "NCCL_ALGO" not in environment
        assert "NCCL_COLLNET_ENABLE" not in environment
        assert environment["NCCL_DEBUG"] == "INFO", "the transport is printed at INFO only"


def test_unknown_sizes_name_their_neighbours() -> None:
    with pytest.raises(UnknownSku) as caught:
        sku("Standard_ND96isr_H100")
    assert caught.value.near[0] == "Standard_ND96isr_H100_v5"
