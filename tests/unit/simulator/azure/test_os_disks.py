"""OS disks of pools: what Azure's own sources show, and what the program chooses for each VM size."""

from __future__ import annotations

from typing import Any

import pytest

from config.data.skus import VmSku, catalogue
from config.schema.os_disk import MAX_OS_DISK_GB, MIN_OS_DISK_GB, os_disk
from simulator.azure.types.agent_pool import os_disks


def size(vcpus: int, temporary: int, cache: int = 0) -> VmSku:
    return VmSku(name="Standard", family="f", vcpus=vcpus, memory_gib=1, temp_gib=temporary, cache_gib=cache)


@pytest.mark.parametrize(
    ("sku", "given", "gets"),
    [
        # https://learn.microsoft.com/azure/aks/concepts-storage: D8ds_v5, E2bds_v5 and E4bds_v5
        (size(8, 300), {}, (300, "Ephemeral")),
        (size(2, 75), {"osDiskSizeGB": 100}, (100, "Managed")),
        (size(2, 75), {"osDiskSizeGB": 60}, (60, "Ephemeral")),
        (size(4, 150), {"osDiskSizeGB": 100}, (100, "Ephemeral")),
        # The same page: managed disks by vCPUs
        *((size(vcpus, 0), {}, (gib, "Managed")) for vcpus, gib in ((1, 128), (7, 128), (8, 256), (15, 256))),
        *((size(vcpus, 0), {}, (gib, "Managed")) for vcpus, gib in ((16, 512), (63, 512), (64, 1024), (96, 1024))),
        # https://github.com/Azure/karpenter-provider-azure, pkg/providers/instancetype/suite_test.go: B20ms, 128 GB
        (size(20, 160, cache=30), {"osDiskSizeGB": 128}, (128, "Managed")),
    ],
)
def test_defaults_are_akss(sku: VmSku, given: dict[str, Any], gets: tuple[int, str]) -> None:
    properties = dict(given)
    os_disks.fill(properties, sku)
    assert (properties["osDiskSizeGB"], properties["osDiskType"]) == gets


@pytest.mark.parametrize("sku", catalogue().values(), ids=lambda sku: str(sku.name))
def test_the_program_chooses_what_aks_accepts(sku: VmSku) -> None:
    """For each size of a disk: it can be had, and AKS would choose the same type."""
    for gib in (MIN_OS_DISK_GB, 128, 144, 150, 176, 256, 512, 1024, 2040, 2041, MAX_OS_DISK_GB):
        chosen = os_disk(sku, gib)
        os_disks.check({"osDiskSizeGB": chosen.gb, "osDiskType": chosen.type}, sku)
        properties: dict[str, Any] = {"osDiskSizeGB": gib}
        os_disks.fill(properties, sku)
        assert properties["osDiskType"] == chosen.type, gib
