"""Calculates how many devices a node should offer: those of its VM size (config/data/skus.yaml), times their shares."""

from __future__ import annotations

import json

from config.data.gpu_sharing import MIG_LABEL, MIG_STATE_LABEL, mig_profiles, partition_of
from config.data.scheduling import GPU_RESOURCE, INSTANCE_TYPE
from config.data.skus import VmSku, catalogue
from diagnosis.cluster import NIC_POLICY, Cluster
from diagnosis.shapes import fit
from k8s.objects import Object
from k8s.quantities import count

SHARED_GPU = f"{GPU_RESOURCE}.shared"
"""The name of time-sliced GPUs if the device plugin renames them (NVIDIA/k8s-device-plugin, renameByDefault)."""
_MIG = "nvidia.com/mig-"
"""Prefix of the resource names of partitions if MIG's strategy is `mixed`."""
_AMD = "amd.com/gpu"
_EXCLUSIVE = ("nvidia.com/mlnxnics", "rdma/ib")
"""Names of HCAs that pods do not share, here and in Azure/aks-rdma-infiniband. A NicClusterPolicy may set others."""
_SHARES = "nvidia.com/gpu.replicas"
_STRATEGY = "nvidia.com/mig.strategy"
"""Labels of GPU feature discovery: time slices per GPU, and the naming strategy of partitions."""
_SOME_DEVICES = ("pfNames", "pciAddresses", "rootDevices", "ddpProfiles", "acpiIndexes")
"""Selectors that restrict a resource to some of a node's HCAs (sriov-network-device-plugin, pkg/types)."""


def is_gpu(resource: str) -> bool:
    return resource.startswith((GPU_RESOURCE, _MIG))


def expected(cluster: Cluster, node: Object, resource: str) -> int:
    size = catalogue().get(node["metadata"].get("labels", {}).get(INSTANCE_TYPE, ""))
    if size is None:
        return 0
    if is_gpu(resource):
        return _gpus(node, size, resource) if size.gpu_vendor == "nvidia" else 0
    if resource == _AMD:
        return size.gpus if size.gpu_vendor == "amd" else 0
    return size.infiniband.hcas if size.infiniband and resource in _exclusive(cluster) else 0


def _gpus(node: Object, size: VmSku, resource: str) -> int:
    labels = node["metadata"].get("labels", {})
    shares = max(count(labels.get(_SHARES)), 1)
    profile, mixed = labels.get(MIG_LABEL, "all-disabled"), labels.get(_STRATEGY) == "mixed"
    if profile == "all-disabled" and "-MIG-" not in labels.get("nvidia.com/gpu.product", ""):
        return size.gpus * shares if resource in (GPU_RESOURCE, SHARED_GPU) else 0
    of_profile = f"{_MIG}{partition_of(profile)}" if mixed else GPU_RESOURCE
    if labels.get(MIG_STATE_LABEL, "success") != "success" or resource.removesuffix(".shared") != of_profile:
        return 0
    return size.gpus * mig_profiles(size.gpu_product).get(profile, 0) * shares


def configured(cluster: Cluster) -> set[str]:
    policies = cluster.all(NIC_POLICY)
    return (
        _exclusive(cluster) if any(_entries(each, "sriovDevicePlugin", "resourceList") for each in policies) else set()
    )


def _exclusive(cluster: Cluster) -> set[str]:
    policies = cluster.all(NIC_POLICY)
    entries = [entry for policy in policies for entry in _entries(policy, "sriovDevicePlugin", "resourceList")]
    shared = [entry for policy in policies for entry in _entries(policy, "rdmaSharedDevicePlugin", "configList")]
    if not entries:
        return {*_EXCLUSIVE} - {_name(entry, "rdma") for entry in shared}
    selectors = entries[0].get("selectors")
    given = [each for each in (selectors if isinstance(selectors, list) else [selectors]) if isinstance(each, dict)]
    some = len(entries) > 1 or any(each.get(key) for each in given for key in _SOME_DEVICES)
    return set() if some else {_name(entries[0], "intel.com")}


def _entries(policy: Object, plugin: str, key: str) -> list[Object]:
    try:
        config = json.loads(policy["spec"].get(plugin, {}).get("config", ""))
    except ValueError:
        return []
    read = fit(config, {key: [{"resourcePrefix": "text", "resourceName!": "text"}]}) or {}
    entries: list[Object] = read.get(key, [])
    return entries


def _name(entry: Object, prefix: str) -> str:
    return f"{entry.get('resourcePrefix', prefix)}/{entry['resourceName']}"
