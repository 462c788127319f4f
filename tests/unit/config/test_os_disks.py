"""OS disks of GPU pools: what new ones get, and what stacks beside a platform know of its pools' disks."""

from __future__ import annotations

from typing import Any

import pytest

from config.schema.pools import PoolSettings, gpu_sizes
from tests.support.settings import A100, H100, T4, load, platform

ND_A100 = "Standard_ND96asr_v4"
NC_H100 = "Standard_NC40ads_H100_v5"
LODGER = {"platformStack": "dev", "workloads": "notebook"}


def disk(size: str, **given: Any) -> str:
    return str(PoolSettings.model_validate({"vmSku": size, **given}).disk)


def test_images_have_room_on_every_size_and_are_local_where_a_disk_is_large_enough() -> None:
    local = {size for size in gpu_sizes() if disk(size) == "512 GB Ephemeral"}
    assert local == {
        *("Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5", ND_A100, "Standard_ND96amsr_A100_v4"),
    }
    assert {disk(size) for size in gpu_sizes() if size not in local} == {"512 GB Managed"}


@pytest.mark.parametrize(
    ("size", "given", "gets"),
    [
        (H100, {"osDiskGb": 128}, "128 GB Ephemeral"),
        (H100, {"osDiskGb": 1024}, "1024 GB Ephemeral"),
        (H100, {"osDiskGb": 1025}, "1025 GB Managed"),
        (H100, {"osDiskType": "Managed"}, "512 GB Managed"),
        (ND_A100, {"osDiskGb": 2048}, "2048 GB Managed"),  # more than Azure makes of local ones
        (A100, {"osDiskGb": 256}, "256 GB Ephemeral"),  # in the cache
        (A100, {"osDiskType": "Ephemeral"}, "256 GB Ephemeral"),
        (T4, {"osDiskType": "Ephemeral"}, "144 GB Ephemeral"),  # its cache: no source doubts that it takes this
        (T4, {"osDiskGb": 176}, "176 GB Managed"),
        (T4, {"osDiskGb": 176, "osDiskType": "Ephemeral"}, "176 GB Ephemeral"),
        (NC_H100, {"osDiskGb": 128}, "128 GB Managed"),  # its local disks are NVMe, which hold none
        (NC_H100, {"osDiskType": "Ephemeral"}, "512 GB Ephemeral"),  # whoever asks for it may know of a cache
    ],
)
def test_what_is_set_stays_and_decides_the_rest(size: str, given: dict[str, Any], gets: str) -> None:
    assert disk(size, **given) == gets
    assert load({"pools": {"gpu": {"vmSku": size, **given}}}), "and can be had"


def test_a_workload_stack_knows_the_disks_of_its_platform_s_pools() -> None:
    pools = {"a": {"vmSku": H100}, "b": {"vmSku": H100, "osDiskGb": 256, "osDiskType": "Managed"}}
    found = load(
        LODGER | {"workloadOptions": {"notebook": {"pool": "a"}}},
        others={"dev": platform({"pools": pools})},
        name="jobs",
    )
    assert {key: str(pool.disk) for key, pool in found.gpu_pools().items()} == {
        "a": "512 GB Ephemeral",
        "b": "256 GB Managed",
    }


def test_what_is_wrong_with_a_platform_is_mended_where_it_is_set() -> None:
    with pytest.raises(Exception, match="change vmSku in the stack file of dev to what is allowed"):
        load({**LODGER, "workloads": "nccl-allreduce"}, name="jobs", others={"dev": platform({"vmSku": T4})})
