"""OS disks of GPU pools: what new ones get, and what stacks beside a platform know of its pools' disks."""

from __future__ import annotations

from typing import Any

import pytest

from config.rules.platform_stack import OUTPUT
from config.schema.os_disk import FORMER_DISK, OsDisk
from config.schema.pools import PoolSettings, agent_pool_name, gpu_sizes
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


def lent(stack: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = platform(stack)[OUTPUT]["settings"]
    return settings


def test_a_platform_tells_the_disks_that_versions_before_would_not_expect() -> None:
    """By keys that those know; the pool of `vmSku` too then stands among `pools`, where they look first."""
    new = {"osDiskGb": 512, "osDiskType": "Ephemeral"}
    assert lent({"vmSku": H100}) == {"vmSku": H100, "pools": {"gpu": {"vmSku": H100, "count": 2, **new}}}
    former = {"osDiskGb": 128, "osDiskType": "Managed"}
    pools = {"a": {"vmSku": H100, "spot": True}, "b": {"vmSku": H100, **former}}
    assert lent({"pools": pools})["pools"] == {"a": {"vmSku": H100, "spot": True, **new}, "b": {"vmSku": H100}}


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"vmSku": H100}, FORMER_DISK),
        ({"pools": {"gpu": {"vmSku": H100}}}, FORMER_DISK),
        ({"pools": {"gpu": {"vmSku": H100, "osDiskGb": 256}}}, OsDisk(256, "Managed")),
        ({"pools": {"gpu": {"vmSku": H100, "osDiskType": "Ephemeral"}}}, OsDisk(128, "Ephemeral")),
        ({"vmSku": H100, "pools": {"gpu": {"vmSku": H100, "osDiskGb": 512, "osDiskType": "Ephemeral"}}},
         OsDisk(512, "Ephemeral")),
    ],
)  # fmt: skip
def test_a_workload_stack_knows_the_pools_of_platforms_of_any_version(told: dict[str, Any], meant: OsDisk) -> None:
    outputs = {OUTPUT: {"settings": told, "loginServer": "registry.azurecr.io"}}
    pool = load(LODGER, name="jobs", others={"dev": outputs}).gpu_pools()["gpu"]
    assert pool.disk == meant
    assert agent_pool_name("gpu", pool) == agent_pool_name("gpu", PoolSettings(vm_sku=H100).with_disk(meant))


@pytest.mark.parametrize("told", [{"vmSku": T4}, lent({"vmSku": T4})])
def test_what_is_wrong_with_a_platform_is_mended_where_it_is_set(told: dict[str, Any]) -> None:
    """`vmSku`, whether the pool that it makes stands among the told ones or not."""
    outputs = {OUTPUT: {"settings": told, "loginServer": "registry.azurecr.io"}}
    with pytest.raises(Exception, match="change vmSku in the stack file of dev to what is allowed"):
        load({**LODGER, "workloads": "nccl-allreduce"}, name="jobs", others={"dev": outputs})


@pytest.mark.parametrize("name", ["gpu4082", "gpuba3d"])
def test_pods_may_choose_a_pool_that_is_there_by_the_name_that_aks_gives_its_nodes(name: str) -> None:
    chosen = {"spec": {"nodeSelector": {"kubernetes.azure.com/agentpool": name}}}
    assert load({"vmSku": H100, "workloads": "notebook", "workloadOptions": {"notebook": {"podOverrides": chosen}}})
