"""GPUs shared by several pods: time slicing, or partitions (MIG, from `mig.yaml`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from config.data import data
from config.data.skus import VmSku

SLICING_LABEL = "nvidia.com/device-plugin.config"
"""The node label that selects the device plugin's configuration, by its key in the ConfigMap."""
MIG_LABEL = "nvidia.com/mig.config"
"""The node label that selects the partitions that the MIG manager creates."""
MIG_STATE_LABEL = "nvidia.com/mig.config.state"
"""The result as a node label: `pending`, `rebooting`, `success` or `failed` (NVIDIA/mig-parted, reconfigure_mig.go)."""


@functools.cache
def _partitions() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = data.read("mig.yaml")["profiles"]
    return found


def mig_profiles(gpu_product: str) -> Mapping[str, int]:
    """Returns the partitionings of a GPU (named as by nvidia-smi), with the number of partitions; empty without MIG."""
    return _partitions().get(gpu_product, {})


def slicing_profile(sku: VmSku, slices: int) -> str:
    """Returns the name of the device plugin's configuration with this slicing: tesla-t4-ts2."""
    return f"{sku.gpu_product.lower().replace(' ', '-')}-ts{slices}"


def partition_of(profile: str) -> str:
    """Returns a partition's name in nvidia-smi: 1g.10gb of all-1g.10gb."""
    return profile.removeprefix("all-")
