from __future__ import annotations

from typing import Any

import pytest

from config.schema.pools import PoolSettings, gpu_sizes
from tests.support.case_files import case_table
from tests.support.settings import load, platform
from tests.support.sizes import H100, T4

ND_A100 = "Standard_ND96asr_v4"
CONSUMER = {"platformStack": "dev", "workloads": "notebook"}


def disk(size: str, **given: Any) -> str:
    return str(PoolSettings.model_validate({"vmSku": size, **given}).disk)


def test_default_disks_are_local_if_they_fit() -> None:
    local = {size for size in gpu_sizes() if disk(size) == "512 GB Ephemeral"}
    assert local == {
        *("Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5", ND_A100, "Standard_ND96amsr_A100_v4"),
    }
    assert {disk(size) for size in gpu_sizes() if size not in local} == {"512 GB Managed"}


@case_table(__file__, "disks")
def test_settings_of_disks(size: str, given: dict[str, Any], gets: str) -> None:
    assert disk(size, **given) == gets
    assert load({"pools": {"gpu": {"vmSku": size, **given}}})


def test_a_consumer_stack_uses_the_disks_of_its_platform() -> None:
    pools = {"a": {"vmSku": H100}, "b": {"vmSku": H100, "osDiskGb": 256, "osDiskType": "Managed"}}
    found = load(
        CONSUMER | {"workloadOptions": {"notebook": {"pool": "a"}}},
        others={"dev": platform({"pools": pools})},
        name="jobs",
    )
    assert {key: str(pool.disk) for key, pool in found.gpu_pools().items()} == {
        "a": "512 GB Ephemeral",
        "b": "256 GB Managed",
    }


def test_the_fix_of_a_platform_problem_is_in_its_stack() -> None:
    with pytest.raises(Exception, match="pulumi config set -s dev vmSku <value> && pulumi up -s dev"):
        load({**CONSUMER, "workloads": "nccl-allreduce"}, name="jobs", others={"dev": platform({"vmSku": T4})})
