"""OS disks of pools: AKS's defaults and checks.

Sources: https://learn.microsoft.com/azure/aks/concepts-storage (defaults),
https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks (ephemeral disks).
"""

from __future__ import annotations

from config.data.skus import VmSku
from simulator.azure.errors import bad_request
from simulator.azure.store import Body

_LARGEST_EPHEMERAL_GIB = 2040
_LEAST_TEMPORARY_GIB = 128
"""The smallest temporary disk for which AKS's default OS disk is ephemeral."""
_MANAGED_GIB = ((64, 1024), (16, 512), (8, 256), (0, 128))
"""Pairs of a minimum of vCPUs and the default size of managed disks."""


def fill(properties: Body, sku: VmSku) -> None:
    """Sets an omitted size or type. A size of 0 also means the default.

    The documented default is the size of the temporary disk. If it exceeds the largest ephemeral disk, no default is
    documented; the simulator uses the largest ephemeral disk. A recorded NC4as_T4_v3 node has the size of the cache
    (tests/contract/recordings/nodes.yaml).
    """
    temporary = 0 if sku.temp_is_nvme else sku.temp_gib
    local = sku.cache_gib or temporary
    if not properties.get("osDiskSizeGB"):
        is_local = temporary >= _LEAST_TEMPORARY_GIB and properties.get("osDiskType") != "Managed"
        managed = next(gib for vcpus, gib in _MANAGED_GIB if sku.vcpus >= vcpus)
        properties["osDiskSizeGB"] = min(local, _LARGEST_EPHEMERAL_GIB) if is_local else managed
        if is_local:
            properties.setdefault("osDiskType", "Ephemeral")
    # If a VM size has a cache, only the cache decides, not the temporary disk (AKS's page on storage, and
    # https://github.com/Azure/karpenter-provider-azure, pkg/providers/instancetype/suite_test.go: Standard_B20ms).
    fits = properties["osDiskSizeGB"] <= min(local, _LARGEST_EPHEMERAL_GIB)
    properties.setdefault("osDiskType", "Ephemeral" if fits else "Managed")


def check(properties: Body, sku: VmSku) -> None:
    """Raises ArmError for an ephemeral disk that fits neither the cache nor the temporary disk, or exceeds the maximum.

    Error texts: https://github.com/Azure/AKS/issues/2694,
    https://github.com/MicrosoftDocs/azure-docs/issues/115366, and Azure's page (for the largest ephemeral disk).
    """
    gib = properties["osDiskSizeGB"]
    local = max(sku.cache_gib, sku.temp_gib)
    if properties["osDiskType"] != "Ephemeral" or gib <= min(local, _LARGEST_EPHEMERAL_GIB):
        return
    if not local:
        message = f"The Virtual Machine size {sku.name} does not support Ephemeral OS disk."
        raise bad_request(message, code="VMSizeDoesNotSupportEphemeralOS")
    if gib <= local:
        message = (
            f"OS disk of Ephemeral VM with size greater than {_LARGEST_EPHEMERAL_GIB} GB is not allowed for VM size "
            f"{sku.name} when the DiffDiskPlacement is ResourceDisk."
        )
        raise bad_request(message, code="NotSupported")
    cache, temporary, needed = (size * 2**30 for size in (sku.cache_gib, sku.temp_gib, gib))
    message = (
        f"The virtual machine size {sku.name} has a cache size of {cache} bytes and temporary disk size of {temporary} "
        f"bytes, but the OS disk requires {needed} bytes. "
        "Use a VM size with larger cache, larger temp disk, or disable ephemeral OS."
    )
    raise bad_request(message, code="VMCannotFitEphemeralOSDisk")
