"""OS disks of GPU pools: what new ones get, and what stacks beside a platform know of its pools' disks."""

from __future__ import annotations

from typing import Any

import pytest

from config.schema.pools import PoolSettings, gpu_sizes
from tests.support.case_files import case_table
from tests.support.settings import load, platform
from tests.support.sizes import H100, T4

ND_A100 = "Standard_ND96asr_v4"
LODGER = {"platformStack": "dev", "workloads": "notebook"}


def disk(size: str, **given: Any) -> str:
    return str(PoolSettings.model_validate({"vmSku": size, **given}).disk)


def test_images_have_room_on_every_size_and_are_local_where_a_disk_is_large_enough() -> None:
    local = {size for size in gpu_sizes() if disk(size) == "512 GB Ephemeral"}
    assert local == {
        *("Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5", ND_A100, "Standard_ND96amsr_A100_v4"),
    }
    assert {disk(size) for size in gpu_sizes() if size not in local} == {"512 GB Managed"}


@case_table(__file__, "disks")
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
