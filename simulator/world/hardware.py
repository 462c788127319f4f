"""The hardware of a node. It depends only on SKU, name and faults, so it is the same in every call."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from config.data import skus
from simulator.world.faults import Fault, FaultKind

MELLANOX, MICROSOFT = skus.pci_vendor("mellanox"), "1414"
KERNEL = "6.8.0-1030-azure"
OS_ID, OS_VERSION = "ubuntu", "24.04"
ETHERNET_GBPS = 100
LOCAL_DISK, NVME_OS_DISK, SCSI_OS_DISK = "Microsoft NVMe Direct Disk", "MSFT NVMe Accelerator v1.0", "Virtual Disk"
"""Disk models (udev/80-azure-disk.rules of Azure/azure-vm-utils)."""
OS_DISK_BYTES = 128 * 2**30
SECTOR_BYTES = 512
_XIDS = {FaultKind.ECC: 63, FaultKind.REMAP: 64, FaultKind.NVLINK: 74, FaultKind.GPU: 79}
"""The Xids that NVIDIA's driver logs for faults."""


@dataclass(frozen=True)
class PciDevice:
    """One PCI function. Ids and class are lower-case hexadecimal, as in NFD's `pci.device`."""

    address: str
    vendor: str
    device: str
    pci_class: str
    """Class and subclass: 0302 3D controller, 0207 InfiniBand, 0200 Ethernet, 0108 NVMe."""


@dataclass(frozen=True)
class Gpu:
    """One GPU. `index` is its number in nvidia-smi, in PCI order."""

    index: int
    pci: str
    uuid: str
    model: str
    product: str
    """The name in nvidia-smi."""
    memory_gb: int
    healthy: bool
    remap_pending: bool = False
    remap_failed: bool = False
    slowed: bool = False
    """Whether heat has reduced the clocks."""
    lost_links: tuple[int, ...] = ()
    xids: tuple[int, ...] = ()
    """Xids logged since the boot, the worst last."""


FLAPS = 3


@dataclass(frozen=True)
class Hca:
    """One HCA. `gbps` is the current rate, `rated_gbps` that of a healthy link (Gb/s). `pkey` is 0xffff on Ethernet.

    `rail_gbps` is the rate of the switches behind the HCA. A single node cannot measure this rate.
    """

    name: str
    pci: str
    device: str
    link_layer: str
    state: str
    gbps: int
    rated_gbps: int
    rail_gbps: int
    pkey: str
    guid: str
    flapping: bool = False


@dataclass(frozen=True)
class Disk:
    """A disk of `sectors` of 512 bytes. `model` distinguishes local disks from OS disks."""

    name: str
    model: str
    sectors: int
    pci: str = ""
    """The PCI address; empty for a disk on Hyper-V's SCSI controller."""


@dataclass(frozen=True)
class NodeHardware:
    """One node. `up` is False during a node fault."""

    node: str
    sku: str
    up: bool
    pci: tuple[PciDevice, ...]
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]
    nvme: tuple[Disk, ...]
    os_disk: Disk
    booted: float = 0.0
    """The time of the last reboot in seconds since 1970, or 0."""
    kernel: str = KERNEL
    os_id: str = OS_ID
    os_version: str = OS_VERSION

    @property
    def without_faults(self) -> NodeHardware:
        gpus = tuple(replace(gpu, healthy=True) for gpu in self.gpus)
        return replace(self, gpus=gpus, hcas=tuple(replace(hca, state="ACTIVE") for hca in self.hcas))


def node_hardware(sku: skus.VmSku, node_name: str, faults: Iterable[Fault] = ()) -> NodeHardware:
    mine = [fault for fault in faults if fault.node == node_name or fault.kind is FaultKind.RAIL]
    gpus, gpu_functions = _gpus(sku, node_name, mine)
    hcas, hca_functions = _hcas(sku, node_name, mine)
    os_disk = _os_disk(sku)
    disks = _local_disks(sku, mine, first=int(bool(os_disk.pci)))
    disk_functions = [PciDevice(disk.pci, MICROSOFT, "b111", "0108") for disk in (*disks, os_disk) if disk.pci]
    return NodeHardware(
        node=node_name,
        sku=sku.name,
        up=not any(fault.kind is FaultKind.NODE for fault in mine),
        pci=tuple(sorted([*gpu_functions, *hca_functions, *disk_functions], key=lambda function: function.address)),
        gpus=gpus,
        hcas=hcas,
        nvme=disks,
        os_disk=os_disk,
    )


def pool_of(node_name: str) -> str:
    """Returns the scale set in a node name of AKS (`aks-gpu-12345678-vmss000001`). Its nodes share a fabric."""
    return node_name.rpartition("-vmss")[0] or node_name


def _os_disk(sku: skus.VmSku) -> Disk:
    """Returns an NVMe disk from version 6 of a VM family, else a SCSI disk (learn.microsoft.com: nvme-overview)."""
    version = re.search(r"_v(\d+)$", sku.name)
    sectors = OS_DISK_BYTES // SECTOR_BYTES
    if version and int(version.group(1)) >= 6:
        return Disk("nvme0n1", NVME_OS_DISK, sectors, _nvme_address(0))
    return Disk("sda", SCSI_OS_DISK, sectors)


def _local_disks(sku: skus.VmSku, faults: Sequence[Fault], first: int) -> tuple[Disk, ...]:
    if sku.nvme is None:
        return ()
    sectors = int(sku.nvme.total_tib * 2**40 / sku.nvme.count) // SECTOR_BYTES
    numbers = range(first, first + sku.nvme.count)
    disks = (Disk(f"nvme{index}n1", LOCAL_DISK, sectors, _nvme_address(index)) for index in numbers)
    gone = {fault.device for fault in faults if fault.kind is FaultKind.NVME}
    return tuple(disk for disk in disks if disk.name not in gone)


def _nvme_address(index: int) -> str:
    return f"{index + 0xC000:04x}:00:00.0"


def _gpus(sku: skus.VmSku, node: str, faults: Sequence[Fault]) -> tuple[tuple[Gpu, ...], list[PciDevice]]:
    gpus = tuple(
        _gpu(sku, node, index, f"{domain}:00:00.0", [fault for fault in faults if fault.device == str(index)])
        for index, domain in enumerate(_domains(sku, 0, sku.gpus))
    )
    return gpus, [PciDevice(gpu.pci, sku.gpu_pci_vendor, sku.gpu_pci_device, "0302") for gpu in gpus]


def _gpu(sku: skus.VmSku, node: str, index: int, pci: str, faults: Sequence[Fault]) -> Gpu:
    kinds = {fault.kind for fault in faults}
    xids = [
        *sorted(fault.code for fault in faults if fault.code),
        *(xid for kind, xid in _XIDS.items() if kind in kinds),
    ]
    return Gpu(
        index=index,
        pci=pci,
        uuid="GPU-" + str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node}/gpu/{index}")),
        model=sku.gpu_model,
        product=sku.gpu_product,
        memory_gb=sku.gpu_memory_gb,
        healthy=FaultKind.GPU not in kinds,
        remap_pending=FaultKind.ECC in kinds,
        remap_failed=FaultKind.REMAP in kinds,
        slowed=FaultKind.THERMAL in kinds,
        lost_links=(*((0,) if FaultKind.NVLINK in kinds else ()), *sku.gpu_nvlinks_unused),
        xids=tuple(xids),
    )


def _hcas(sku: skus.VmSku, node: str, faults: Sequence[Fault]) -> tuple[tuple[Hca, ...], list[PciDevice]]:
    """Returns HCAs and PCI functions. The last HCA, on every node, is the Ethernet of accelerated networking."""
    infiniband = sku.infiniband
    domains = _domains(sku, 1, infiniband.hcas) if infiniband else []
    hcas = [
        _infiniband_hca(infiniband, node, f"mlx5_{index}", f"{domain}:00:00.0", faults)
        for index, domain in enumerate(domains)
        if infiniband
    ]
    ethernet_address = f"{0x7000 + number(node, 'vf') % 0x8000:04x}:00:02.0"
    functions = [PciDevice(hca.pci, MELLANOX, hca.device, "0207") for hca in hcas]
    functions.append(PciDevice(ethernet_address, MELLANOX, "101a", "0200"))
    ethernet = Hca(
        name=f"mlx5_{len(hcas)}",
        pci=ethernet_address,
        device="101a",
        link_layer="Ethernet",
        state="ACTIVE",
        gbps=ETHERNET_GBPS,
        rated_gbps=ETHERNET_GBPS,
        rail_gbps=ETHERNET_GBPS,
        pkey="0xffff",
        guid=_guid(node, "vf"),
    )
    return (*hcas, ethernet), functions


def _infiniband_hca(infiniband: skus.InfiniBand, node: str, name: str, pci: str, faults: Sequence[Fault]) -> Hca:
    mine = [fault for fault in faults if fault.device == name]
    down = any(fault.kind is FaultKind.HCA for fault in mine)
    slow, behind = ([fault.gbps for fault in mine if fault.kind is kind] for kind in (FaultKind.LINK, FaultKind.RAIL))
    return Hca(
        name=name,
        pci=pci,
        device=infiniband.device_id,
        link_layer="InfiniBand",
        state="DOWN" if down else "ACTIVE",
        gbps=min([infiniband.gbps, *slow]),
        rated_gbps=infiniband.gbps,
        rail_gbps=min([infiniband.gbps, *behind]),
        pkey=_pkey(node, faults),
        guid=_guid(node, name),
        flapping=any(fault.kind is FaultKind.FLAPPING for fault in mine),
    )


def _pkey(node: str, faults: Sequence[Fault]) -> str:
    """Returns the partition key of the scale set, or of the node alone. The top bit means full membership."""
    alone = any(fault.kind is FaultKind.PARTITION for fault in faults)
    return f"0x{0x8000 + 1 + number(node if alone else pool_of(node), 'pkey') % 0x7FFD:04x}"


def _domains(sku: skus.VmSku, part: int, count: int) -> list[str]:
    """Returns PCI domains of GPUs (part 0) or HCAs (part 1) in bus order, numbered if the topology is unknown."""
    if sku.topology is None:
        return [f"{index + 1 + 0x100 * part:04x}" for index in range(count)]
    numa = skus.topologies()[sku.topology].numa
    return sorted(pair[part] for node in numa for bridge in node.bridges for pair in bridge)[:count]


def _guid(node: str, device: str) -> str:
    """Returns a GUID in sysfs's format: four groups of four digits. 0015:5d is Microsoft's vendor part."""
    digits = f"00155d{number(node, device) & 0xFFFFFFFFFF:010x}"
    return ":".join(digits[start : start + 4] for start in range(0, 16, 4))


def number(*parts: str) -> int:
    """Returns a stable number for these words."""
    return int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:8], "big")
