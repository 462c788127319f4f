"""An agent pool's Node objects, with AKS's names, labels, taints and sizes.

Labels: AKS's page on node labels. Reservations: AKS's page on node resource reservations (Kubernetes 1.29 and newer).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from config.data.skus import VmSku
from simulator.world.nodes import DRIVER_ANNOTATION, PARTITION_ANNOTATION

Node = dict[str, Any]
ADDRESSES_PER_POOL = 1024  # of 10.224.0.0/16; a pool has at most 1000 nodes
_FIRST_ADDRESS = 4  # Azure reserves a subnet's first four addresses
_EVICTION_MIB = 100  # the kubelet's eviction threshold memory.available
_KERNEL_MIB = 160  # recorded nodes: 112 to 316 plus page tables (tests/contract/recordings/nodes.yaml)
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Image:
    """The node image of an osSKU."""

    sku: str
    """The osSKU with its version, as in AKS's node labels."""
    version: str
    os: str
    kernel: str
    containerd: str


_UBUNTU_2404 = Image(
    "Ubuntu2404", "AKSUbuntu-2404gen2containerd-202511.07.0", "Ubuntu 24.04.3 LTS", "6.8.0-1030-azure", "2.1.4-1"
)
_UBUNTU_2204 = Image(
    "Ubuntu2204", "AKSUbuntu-2204gen2containerd-202511.07.0", "Ubuntu 22.04.5 LTS", "5.15.0-1098-azure", "1.7.28-1"
)
_AZURE_LINUX = Image(
    "AzureLinux3", "AKSAzureLinux-V3gen2-202511.07.0", "Microsoft Azure Linux 3.0", "6.6.104.2-4.azl3", "2.1.4-1"
)
_IMAGES: Mapping[str, Image] = {
    "Ubuntu": _UBUNTU_2404,
    "Ubuntu2204": _UBUNTU_2204,
    "AzureLinux": _AZURE_LINUX,
    "AzureLinux3": _AZURE_LINUX,
    "CBLMariner": _AZURE_LINUX,
}


def image(os_sku: str, kubernetes: str) -> Image:
    """Returns an osSKU's image. `Ubuntu` means 24.04 since Kubernetes 1.35, and 22.04 before."""
    is_old = tuple(map(int, kubernetes.split(".")[:2])) < (1, 35)
    return _UBUNTU_2204 if os_sku == "Ubuntu" and is_old else _IMAGES[os_sku]


@dataclass(frozen=True)
class Pool:
    """The input for a pool's nodes. `properties` are ARM's, with defaults."""

    id: str
    name: str
    properties: Mapping[str, Any]
    location: str
    node_group: str
    kubernetes: str
    """The patch version (1.35.4)."""
    index: int
    """The index of the pool's address block."""
    instances: Sequence[int]
    one_fabric: bool = True
    """Whether AKSInfinibandSupport was registered at the pool's creation."""

    @property
    def scale_set(self) -> str:
        return scale_set(self.id, self.name)


def scale_set(pool_id: str, name: str) -> str:
    digits = int(hashlib.sha256(pool_id.lower().encode()).hexdigest(), 16) % 10**8
    return f"aks-{name}-{digits:08d}-vmss"


def node_name(scale_set: str, instance: int) -> str:
    """Returns a machine's computer name, with the instance number in base 36 (Azure's page on instance ids)."""
    return f"{scale_set}{_base36(instance):>06}"


def manifests(pool: Pool, sku: VmSku) -> list[Node]:
    """Returns one Node per instance, and none for a stopped pool. Device plugins add their resources later."""
    stopped = pool.properties.get("powerState", {}).get("code") == "Stopped"
    return [] if stopped else [_node(pool, sku, instance) for instance in pool.instances]


def _node(pool: Pool, sku: VmSku, instance: int) -> Node:
    name = node_name(pool.scale_set, instance)
    machines = f"providers/Microsoft.Compute/virtualMachineScaleSets/{pool.scale_set}/virtualMachines/{instance}"
    subscription = pool.id.split("/")[2]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(pool, sku, name, instance),
            "annotations": _annotations(pool, sku),
        },
        "spec": {
            "providerID": f"azure:///subscriptions/{subscription}/resourceGroups/{pool.node_group.lower()}/{machines}",
            "taints": [_taint(text) for text in pool.properties.get("nodeTaints", [])],
        },
        "status": _status(pool, sku, name, instance),
    }


def _labels(pool: Pool, sku: VmSku, name: str, instance: int) -> dict[str, str]:
    properties, aks = pool.properties, "kubernetes.azure.com"
    zones, boots = properties.get("availabilityZones"), image(properties["osSKU"], pool.kubernetes)
    zone = f"{pool.location}-{zones[instance % len(zones)]}" if zones else "0"
    profile = {"storageprofile": properties["osDiskType"].lower(), "storagetier": "Premium_LRS"}
    labels = {
        "agentpool": pool.name,
        "beta.kubernetes.io/arch": sku.arch,
        "beta.kubernetes.io/instance-type": sku.name,
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": pool.location,
        "failure-domain.beta.kubernetes.io/zone": zone,
        f"{aks}/agentpool": pool.name,
        f"{aks}/cluster": pool.node_group,
        f"{aks}/mode": properties["mode"].lower(),
        f"{aks}/node-image-version": boots.version,
        f"{aks}/nodepool-type": "VirtualMachineScaleSets",
        f"{aks}/os-sku": properties["osSKU"],
        f"{aks}/os-sku-effective": boots.sku,
        f"{aks}/os-sku-requested": properties["osSKU"],
        f"{aks}/role": "agent",
        f"{aks}/sku-cpu": str(sku.vcpus),
        f"{aks}/sku-memory": str(sku.memory_gib * 1024),
        **profile,
        **{f"{aks}/{name}": value for name, value in profile.items()},
        "kubernetes.io/arch": sku.arch,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": sku.name,
        "topology.disk.csi.azure.com/zone": zone if zones else "",
        "topology.kubernetes.io/region": pool.location,
        "topology.kubernetes.io/zone": zone,
    }
    if sku.gpu_vendor == "nvidia":
        labels |= {"accelerator": "nvidia", f"{aks}/accelerator": "nvidia"}
    if properties.get("scaleSetPriority") == "Spot":
        labels |= {f"{aks}/priority": "spot", f"{aks}/scalesetpriority": "spot"}
    return labels | dict(properties.get("nodeLabels", {}))


def _annotations(pool: Pool, sku: VmSku) -> dict[str, str]:
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    if sku.infiniband and not pool.one_fabric:
        annotations[PARTITION_ANNOTATION] = "alone"
    if sku.gpus and pool.properties.get("gpuProfile", {}).get("driver", "Install") == "Install":
        annotations[DRIVER_ANNOTATION] = "aks"
    return annotations


def _status(pool: Pool, sku: VmSku, name: str, instance: int) -> Node:
    pods, disk_kib = int(pool.properties["maxPods"]), int(pool.properties["osDiskSizeGB"]) * 1024**2
    cpu, memory = _reserved(sku.vcpus, sku.memory_gib * 1024, pods)
    linux = sku.memory_gib * 1008 - _KERNEL_MIB  # MiB; page tables take 1/64
    shared = {"hugepages-1Gi": "0", "hugepages-2Mi": "0", "pods": str(pods)}
    offset = pool.index * ADDRESSES_PER_POOL + _FIRST_ADDRESS + instance % ADDRESSES_PER_POOL
    boots = image(pool.properties["osSKU"], pool.kubernetes)
    return {
        "addresses": [
            {"type": "InternalIP", "address": f"10.224.{offset // 256}.{offset % 256}"},
            {"type": "Hostname", "address": name},
        ],
        "capacity": {
            "cpu": str(sku.vcpus),
            "memory": f"{linux * 1024}Ki",
            "ephemeral-storage": f"{disk_kib}Ki",
            **shared,
        },
        "allocatable": {
            "cpu": f"{sku.vcpus * 1000 - cpu}m",
            "memory": f"{(linux - memory) * 1024}Ki",
            "ephemeral-storage": str(disk_kib * 1024 * 9 // 10),  # kubelet: imagefs eviction threshold of 10 %
            **shared,
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": sku.arch,
            "bootID": hashlib.sha256(f"{name}/boot".encode()).hexdigest()[:32],
            "containerRuntimeVersion": f"containerd://{boots.containerd}",
            "kernelVersion": boots.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{pool.kubernetes}",
            "machineID": hashlib.sha256(name.encode()).hexdigest()[:32],
            "operatingSystem": "linux",
            "osImage": boots.os,
            "systemUUID": hashlib.sha256(f"{name}/uuid".encode()).hexdigest()[:32],
        },
    }


def _reserved(cores: int, memory_mib: int, pods: int) -> tuple[int, int]:
    """Returns the CPU (millicores) and memory (MiB) that AKS reserves.

    Sources: https://learn.microsoft.com/azure/aks/node-resource-reservations and https://github.com/Azure/AKSFlexNode
    (pkg/config, defaultKubeReserved), which has values for CPU counts that the page leaves out.
    """
    cpu = sum(60 if core == 0 else 40 if core == 1 else 20 if core < 4 else 10 for core in range(cores))
    return cpu, min(20 * pods + 50, memory_mib // 4) + _EVICTION_MIB


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
        if not number:
            return digits
