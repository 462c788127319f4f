"""GPUs shared by several pods: time slicing, or partitions (MIG, from `mig.yaml`)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from config.data import data
from config.data.skus import VmSku

SLICING_LABEL = "nvidia.com/device-plugin.config"
MIG_LABEL = "nvidia.com/mig.config"
MIG_STATE_LABEL = "nvidia.com/mig.config.state"
"""The node label with the state: `pending`, `rebooting`, `success` or `failed` (NVIDIA/mig-parted, reconfigure_mig.go).
"""


@functools.cache
def _partitions() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = data.read("mig.yaml")["profiles"]
    return found


def mig_profiles(gpu_product: str) -> Mapping[str, int]:
    """Returns the MIG profiles of a GPU product (a name in nvidia-smi), with their numbers of partitions; empty without
    MIG.
    """
    return _partitions().get(gpu_product, {})


def slicing_profile(sku: VmSku, slices: int) -> str:
    """Returns the name of a time-slicing configuration, such as tesla-t4-ts2."""
    return f"{sku.gpu_product.lower().replace(' ', '-')}-ts{slices}"


def partition_of(profile: str) -> str:
    """Returns the partition of a MIG profile, such as 1g.10gb for all-1g.10gb."""
    return profile.removeprefix("all-")
