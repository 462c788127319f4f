from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data import skus
from tests.support.arm import SUBSCRIPTION, FakeBackend, start

RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("sizes.yaml").read_text("utf-8"))
LISTED = {
    f"Standard_{name}": (family, *numbers, *[0] * (3 - len(numbers)))
    for family, sizes in RECORDED["families"].items()
    for name, numbers in sizes.items()
}
CAPABILITIES = [(name, facts) for one in RECORDED["capabilities"] for name, facts in one["sizes"].items()]
NOT_LISTED = {"Standard_ND128isrG5_GB300_v6"}
"""Sizes on Azure's pages that its API did not list that day."""
NO_GPUS_LISTED = {"Standard_ND128isr_NDR_GB200_v6", "Standard_ND128isr_GB300_v6"}
"""Azure's API lists no GPUs for these sizes; its pages list four."""


def test_every_size_of_the_catalogue_is_listed() -> None:
    assert set(skus.catalogue()) - set(LISTED) == NOT_LISTED


@pytest.mark.parametrize("name", sorted(LISTED))
def test_families_vcpus_memory_and_gpus_agree(name: str) -> None:
    size = skus.sku(name)
    gpus = 0 if name in NO_GPUS_LISTED else size.gpus
    assert (size.family, size.vcpus, size.memory_gib, gpus) == LISTED[name]


@pytest.mark.parametrize(("name", "facts"), CAPABILITIES)
def test_capabilities_agree(name: str, facts: dict[str, Any]) -> None:
    size = skus.sku(name)
    placements = facts.get("SupportedEphemeralOSDiskPlacements", [])
    temporary = facts["NvmeDiskSizeInMiB"] if "NvmeDisk" in placements else facts["MaxResourceVolumeMB"]
    assert (size.temp_gib, size.cache_gib) == (temporary // 1024, facts.get("CachedDiskBytes", 0) // 2**30)
    assert (size.os_disk_gib > 0) == facts["EphemeralOSDiskSupported"]
    assert (size.infiniband is not None) == facts["RdmaEnabled"]
    assert (size.vcpus, size.memory_gib, size.gpus) == (facts["vCPUs"], facts["MemoryGB"], facts.get("GPUs", 0))
    assert {"x64": "amd64", "Arm64": "arm64"}[facts["CpuArchitectureType"]] == size.arch


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[dict[str, dict[str, Any]]]:
    arm = start(tmp_path / "azure", FakeBackend())
    path = f"/subscriptions/{SUBSCRIPTION.subscription_id}/providers/Microsoft.Compute/skus"
    try:
        listed = arm.call("GET", path, **{"api-version": "2021-07-01", "$filter": "location eq 'eastus'"})
        yield {size["name"]: size for size in listed.json()["value"]}
    finally:
        arm.stop()


def test_simulated_azure_lists_the_same_numbers(simulated: dict[str, dict[str, Any]]) -> None:
    assert {"Standard_ND96isr_H100_v5", "Standard_NC4as_T4_v3"} <= set(simulated)
    for name in sorted(set(simulated) & set(LISTED) - NO_GPUS_LISTED):
        family, *numbers = LISTED[name]
        shown = {each["name"]: int(each["value"]) for each in simulated[name]["capabilities"]}
        assert (simulated[name]["family"], *(shown.get(key, 0) for key in ("vCPUs", "MemoryGB", "GPUs"))) == (
            family,
            *numbers,
        )
