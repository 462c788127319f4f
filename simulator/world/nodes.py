"""A Node object's hardware, with its current faults."""

from __future__ import annotations

import dataclasses
import functools
import re

from config.data import skus
from config.data.scheduling import INSTANCE_TYPE
from k8s.objects import Object
from k8s.quantities import count
from simulator.world.boots import BootStore
from simulator.world.faults import Fault, FaultKind, FaultStore
from simulator.world.hardware import SECTOR_BYTES, Disk, Gpu, NodeHardware, node_hardware

NVIDIA, MELLANOX = skus.pci_vendor("nvidia"), skus.pci_vendor("mellanox")
PARTITION_ANNOTATION = "simulator/infiniband-partition"
"""Annotation (`alone`) of nodes in a pool created while AKSInfinibandSupport was not registered."""
DRIVER_ANNOTATION = "simulator/gpu-driver"
"""Annotation (`aks`) of GPU nodes with a driver from AKS (gpuProfile.driver Install, the default)."""
_NO_DEVICES = skus.VmSku(name="", family="", vcpus=1, memory_gib=1, temp_gib=0)

_known = functools.lru_cache(maxsize=1024)(node_hardware)
"""Returns cached hardware: the kubelet needs all nodes' hardware each time it checks its pods."""


def hardware_of(node: Object) -> NodeHardware:
    """Returns the hardware, with the image's OS, and with the OS disk and InfiniBand partition of the pool.

    A node whose instance type is not in the catalogue (a virtual node) has no devices.
    """
    sku = skus.catalogue().get(node["metadata"].get("labels", {}).get(INSTANCE_TYPE, ""), _NO_DEVICES)
    name, annotations = node["metadata"]["name"], node["metadata"].get("annotations", {})
    alone = [Fault(name, FaultKind.PARTITION)] if PARTITION_ANNOTATION in annotations else []
    hardware = _known(sku, name, (*FaultStore().load(), *alone))
    status = node.get("status", {})
    info, disk = status.get("nodeInfo", {}), status.get("capacity", {}).get("ephemeral-storage", "")
    os_id, os_version = os_release(info.get("osImage", ""), (hardware.os_id, hardware.os_version))
    kernel = info.get("kernelVersion") or hardware.kernel
    return dataclasses.replace(
        hardware,
        kernel=kernel,
        os_id=os_id,
        os_version=os_version,
        os_disk=with_capacity(hardware.os_disk, disk),
        booted=BootStore().last(name),
    )


def with_capacity(os_disk: Disk, capacity: str) -> Disk:
    """Returns the OS disk with the node's capacity (536870912Ki), which the pool sets."""
    return dataclasses.replace(os_disk, sectors=count(capacity) // SECTOR_BYTES) if count(capacity) else os_disk


def os_release(image: str, default: tuple[str, str]) -> tuple[str, str]:
    """Returns ID and VERSION_ID of /etc/os-release, from a node's osImage: `Ubuntu 24.04.3 LTS` -> ubuntu, 24.04."""
    found = re.fullmatch(r"(?:Microsoft )?([A-Za-z ]+) (\d+\.\d+)\S*(?: LTS)?", image)
    return (found.group(1).replace(" ", "").lower(), found.group(2)) if found else default


def nvidia_gpus(hardware: NodeHardware) -> list[Gpu]:
    """Returns the GPUs that NVIDIA's driver would find, healthy or not."""
    addresses = {function.address for function in hardware.pci if function.vendor == NVIDIA}
    return [gpu for gpu in hardware.gpus if gpu.pci in addresses]


def has_host_driver(node: Object) -> bool:
    return DRIVER_ANNOTATION in node["metadata"].get("annotations", {})
