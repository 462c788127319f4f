from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from config.data import skus
from config.data.allocatable import allocatable
from config.data.skus import VmSku, catalogue
from config.schema.os_disk import MAX_OS_DISK_GB, MIN_OS_DISK_GB, os_disk
from k8s.quantities import count
from simulator.azure.types.agent_pool import os_disks
from simulator.azure.types.agent_pool.nodes import Pool, manifests
from simulator.world.hardware import SECTOR_BYTES
from simulator.world.nodes import hardware_of
from tests.support.arm import Arm, pool_body, pool_path
from tests.support.case_files import case_table
from tests.support.networks import make
from tests.support.sizes import H100


def _pool(instances: Sequence[int] = (0, 1), **changes: Any) -> Pool:
    properties: dict[str, Any] = {
        "mode": "User",
        "osSKU": "Ubuntu",
        "osDiskType": "Managed",
        "osDiskSizeGB": 128,
        "maxPods": 110,
        "gpuProfile": {"driver": "None"},
        "nodeTaints": ["sku=gpu:NoSchedule", "alone:NoExecute"],
        "nodeLabels": {"ai-on-aks/gpu": "true"},
    } | changes
    return Pool(
        id=pool_path(),
        name="gpu",
        properties=properties,
        location="eastus",
        node_group="MC_rg_aks_eastus",
        kubernetes="1.35.4",
        index=1,
        instances=instances,
    )


def test_names_are_those_of_a_scale_set() -> None:
    names = [node["metadata"]["name"] for node in manifests(_pool(range(37)), skus.sku(H100))]
    prefix = names[0].removesuffix("000000")
    assert prefix.startswith("aks-gpu-")
    assert prefix.endswith("-vmss")
    assert [name.removeprefix(prefix) for name in (names[9], names[10], names[35], names[36])] == [
        "000009",
        "00000a",
        "00000z",
        "000010",
    ]


def test_labels_and_taints() -> None:
    node = manifests(_pool(), skus.sku(H100))[0]
    labels = node["metadata"]["labels"]
    expected = {
        "agentpool": "gpu",
        "kubernetes.azure.com/agentpool": "gpu",
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/accelerator": "nvidia",
        "kubernetes.azure.com/cluster": "MC_rg_aks_eastus",
        "node.kubernetes.io/instance-type": H100,
        "topology.kubernetes.io/region": "eastus",
        "topology.kubernetes.io/zone": "0",
        "kubernetes.io/hostname": node["metadata"]["name"],
        "ai-on-aks/gpu": "true",
    }
    assert expected.items() <= labels.items()
    assert node["spec"]["taints"] == [
        {"key": "sku", "value": "gpu", "effect": "NoSchedule"},
        {"key": "alone", "effect": "NoExecute"},
    ]


def test_allocatable_resources_exclude_reservations() -> None:
    status = manifests(_pool(), skus.sku(H100))[1]["status"]
    assert status["capacity"]["cpu"] == "96"
    assert status["allocatable"]["cpu"] == "94940m"
    assert status["capacity"]["memory"] == f"{(1900 * 1008 - 160) * 1024}Ki"
    assert status["allocatable"]["memory"] == f"{(1900 * 1008 - 160 - 20 * 110 - 150) * 1024}Ki"
    assert status["allocatable"]["ephemeral-storage"] == str(128 * 1024**3 * 9 // 10)
    assert status["addresses"][0] == {"type": "InternalIP", "address": "10.224.4.5"}
    assert status["nodeInfo"]["kubeletVersion"] == "v1.35.4"
    assert not [name for name in status["capacity"] if "nvidia" in name]


@pytest.mark.parametrize(
    ("cores", "gib", "pods", "cpu", "memory_mib"),
    [
        # https://learn.microsoft.com/azure/aks/node-resource-reservations: the table and both examples
        *((cores, 8, 30, cpu, 650) for cores, cpu in ((1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420))),
        (64, 8, 30, 740, 650),
        (4, 4, 70, 140, 1024),
    ],
)
def test_reservations_match_the_documentation(cores: int, gib: int, pods: int, cpu: int, memory_mib: int) -> None:
    size = skus.VmSku(name="Standard", family="f", vcpus=cores, memory_gib=gib, temp_gib=0)
    (node,) = manifests(_pool([0], maxPods=pods), size)
    assert node["status"]["allocatable"]["cpu"] == f"{1000 * cores - cpu}m"
    assert _reserved(node) == (memory_mib + 100) * 1024


def _reserved(node: dict[str, Any]) -> int:
    status = node["status"]
    return (count(status["capacity"]["memory"]) - count(status["allocatable"]["memory"])) // 1024


def test_memory_is_that_of_recorded_nodes() -> None:
    """Two nodes with 16 cores, 64 GiB and 60 pods have the same capacity: https://github.com/Azure/AKS/issues/4524.

    One has the reservation from before Kubernetes 1.29, reported for the newer one.
    """
    before, since = 59329368, 64460556
    reserved_before = int(1024 * (0.25 * 4 + 0.2 * 4 + 0.1 * 8 + 0.06 * 48)) + 750
    size = skus.VmSku(name="Standard", family="f", vcpus=16, memory_gib=64, temp_gib=0)
    (node,) = manifests(_pool([0], maxPods=60), size)
    assert abs((since + _reserved(node)) - (before + reserved_before * 1024)) < 100, (
        "the nodes differ by less than 100 KiB"
    )


def test_the_program_computes_the_same_allocatable_resources() -> None:
    for size in skus.catalogue().values():
        for pods in (30, 110, 250):
            found = manifests(_pool([0], maxPods=pods), size)[0]["status"]["allocatable"]
            known, memory_kib = allocatable(size, pods), count(found["memory"]) // 1024
            assert found["cpu"] == f"{known.cpu_millis}m"
            assert known.memory_kib == memory_kib - 160 * 1024, "the minimum of recorded nodes"


@pytest.mark.parametrize(("kind", "label"), [("Ephemeral", "ephemeral"), ("Managed", "managed")])
def test_nodes_have_the_os_disk_of_their_pool(kind: str, label: str) -> None:
    node = manifests(_pool(osDiskType=kind, osDiskSizeGB=512), skus.sku(H100))[0]
    assert node["status"]["capacity"]["ephemeral-storage"] == f"{512 * 1024**2}Ki"
    assert node["metadata"]["labels"]["kubernetes.azure.com/storageprofile"] == label
    hardware = hardware_of(node)
    assert hardware.os_disk.sectors * SECTOR_BYTES == 512 * 1024**3
    assert len(hardware.nvme) == 8, "the OS disk uses none of them"


def test_stopped_pool_has_no_nodes() -> None:
    assert manifests(_pool(powerState={"code": "Stopped"}), skus.sku(H100)) == []


def test_marks_nodes_whose_driver_aks_installs() -> None:
    for driver, mark in (("Install", "aks"), ("None", None)):
        node = manifests(_pool(gpuProfile={"driver": driver}), skus.sku(H100))[0]
        assert node["metadata"]["annotations"].get("simulator/gpu-driver") == mark


def test_nodes_alternate_between_zones() -> None:
    nodes = manifests(_pool(availabilityZones=["1", "3"]), skus.sku(H100))
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes] == ["eastus-1", "eastus-3"]


def test_missing_nodes_fail_only_their_pool(cluster: Arm) -> None:
    cluster.backend.refused = "bad"
    accepted = cluster.put(pool_path("bad"), pool_body(count=1))
    cluster.done()
    operation = cluster.client.get(accepted.headers["Azure-AsyncOperation"]).json()
    assert (operation["status"], operation["error"]["code"]) == ("Failed", "NodesNotReady")
    assert "Expected: 1, Actual: 0. is invalid" in operation["error"]["message"]
    make(cluster, pool_path("good"), pool_body(count=1))
    assert cluster.get(pool_path("good"))["properties"]["provisioningState"] == "Succeeded"
    assert len(cluster.node_names()) == 3


# -- OS disks ---------------------------------------------------------------------------------------------------------


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
def test_os_disk_defaults_are_those_of_aks(sku: VmSku, given: dict[str, Any], gets: tuple[int, str]) -> None:
    properties = dict(given)
    os_disks.fill(properties, sku)
    assert (properties["osDiskSizeGB"], properties["osDiskType"]) == gets


@case_table(__file__, "disks", file="pool_disks")
def test_sets_the_os_disk_of_a_vm_size(size: str, given: dict[str, Any], gets: list[Any]) -> None:
    properties = dict(given)
    os_disks.fill(properties, skus.sku(size))
    assert [properties["osDiskSizeGB"], properties["osDiskType"]] == gets


@pytest.mark.parametrize("sku", catalogue().values(), ids=lambda sku: str(sku.name))
def test_the_program_chooses_valid_os_disks(sku: VmSku) -> None:
    """AKS accepts each disk size, and would choose the same type."""
    for gib in (MIN_OS_DISK_GB, 128, 144, 150, 176, 256, 512, 1024, 2040, 2041, MAX_OS_DISK_GB):
        chosen = os_disk(sku, gib)
        os_disks.check({"osDiskSizeGB": chosen.gb, "osDiskType": chosen.type}, sku)
        properties: dict[str, Any] = {"osDiskSizeGB": gib}
        os_disks.fill(properties, sku)
        assert properties["osDiskType"] == chosen.type, gib
