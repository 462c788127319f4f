"""The hardware of the node that a program runs on, with the faults that hold now."""

from __future__ import annotations

from typing import Any

from config import skus
from simulator.world.faults import FaultStore
from simulator.world.hardware import Gpu, NodeHardware, node_hardware

NVIDIA, MELLANOX = "10de", "15b3"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
HOST_DRIVER = "simulator/host-gpu-driver"
"""Node annotation: the version of the GPU driver in the node image (AKS with gpuProfile.driver Install)."""

Object = dict[str, Any]


def hardware_of(node: Object) -> NodeHardware:
    """Raises skus.UnknownSku for a node whose instance type is not in the catalogue."""
    sku = skus.sku(node["metadata"].get("labels", {}).get(INSTANCE_TYPE, ""))
    return node_hardware(sku, node["metadata"]["name"], FaultStore().load())


def nvidia_gpus(hardware: NodeHardware) -> list[Gpu]:
    """The GPUs that NVIDIA's driver would find, healthy or not."""
    addresses = {function.address for function in hardware.pci if function.vendor == NVIDIA}
    return [gpu for gpu in hardware.gpus if gpu.pci in addresses]


def host_driver(node: Object) -> str | None:
    """Version of the GPU driver that the node image brought, None where it has none."""
    version: str | None = node["metadata"].get("annotations", {}).get(HOST_DRIVER)
    return version
