"""GPUs that several pods share: by turns (time slicing), or in partitions (MIG, from `mig.yaml`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from config.data import data
from config.data.skus import VmSku

SLICING_LABEL = "nvidia.com/device-plugin.config"
"""Of a node: which of its configurations the device plugin takes there, by its key in their ConfigMap."""
MIG_LABEL = "nvidia.com/mig.config"
"""Of a node: which partitions the MIG manager makes of its GPUs."""
MIG_STATE_LABEL = "nvidia.com/mig.config.state"
"""What came of it: `pending`, `rebooting`, `success` or `failed` (NVIDIA/mig-parted, reconfigure_mig.go)."""


@functools.cache
def _partitions() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = data.read("mig.yaml")["profiles"]
    return found


def mig_profiles(gpu_product: str) -> Mapping[str, int]:
    """The partitionings of a GPU, as nvidia-smi names it, each with its partitions per GPU; none without MIG."""
    return _partitions().get(gpu_product, {})


def slicing_profile(sku: VmSku, slices: int) -> str:
    """Name of the device plugin's configuration that slices GPUs of that size so: tesla-t4-ts2."""
    return f"{sku.gpu_product.lower().replace(' ', '-')}-ts{slices}"


def partition_of(profile: str) -> str:
    """What nvidia-smi calls a partition: 1g.10gb of all-1g.10gb."""
    return profile.removeprefix("all-")
