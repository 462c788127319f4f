"""VM sizes: hardware and expected performance, from `skus.yaml`, `nccl.yaml` and `topologies.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from config.data import data


def _tuples(value: object) -> object:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


class Facts(BaseModel):
    """The base of facts from data files: immutable; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class InfiniBand(Facts):
    """The InfiniBand HCAs of a node; in the VM, each is an SR-IOV virtual function (PCI vendor 15b3, class 0207)."""

    hcas: int
    gbps: int
    """Line rate of each HCA, Gb/s."""
    device_id: str
    sharp: bool
    """Whether the fabric supports in-switch reduction (SHARP)."""
    aks_feature: bool = True
    """True if nodes share a fabric only with the feature AKSInfinibandSupport registered; False if only without it."""


class Nvme(Facts):
    """The local NVMe disks of a node ("Microsoft NVMe Direct Disk")."""

    count: int
    total_tib: int


class Health(Facts):
    """The values that the health check expects on a node. None means that no value is published."""

    sockets: int | None = None
    memory: str | None = None
    """The memory that Linux reports, in NHC's format: 1915071MB, which means MiB."""
    memory_percent: int = 3
    """The allowed deviation of `memory`, in percent."""
    gpu_host_gbs: float | None = None
    """The minimum bandwidth of copies between host and GPU, both directions, GB/s."""
    gpu_peer_gbs: float | None = None
    """The minimum bandwidth of GPU to GPU copies, GB/s."""
    nccl_bytes: str | None = None
    """The message size of the all-reduce in the node, in the format of nccl-tests."""
    nccl_gbs: float | None = None
    """The minimum bus bandwidth of that all-reduce, GB/s, for sizes without `nccl_busbw`."""
    ib_write_gbps: float | None = None
    """The minimum GPUDirect RDMA write per HCA, Gb/s."""
    ib_loopback_gbs: float | None = None
    """The minimum bus bandwidth of the all-reduce in the node if all traffic uses the HCAs, GB/s."""


class Fabric(Facts):
    """The bus bandwidth between nodes, GB/s, without and with SHARP (None without SHARP)."""

    plain: float
    sharp: float | None = None


class BusBandwidth(Facts):
    """NCCL all-reduce bus bandwidth at 16 GiB, GB/s: in one node, between two nodes, and between more nodes."""

    one: float
    two: Fabric
    many: Fabric

    def at(self, nodes: int, *, sharp: bool) -> float:
        if nodes == 1:
            return self.one
        fabric = self.two if nodes == 2 else self.many
        return fabric.sharp if sharp and fabric.sharp is not None else fabric.plain


class NcclBusBandwidth(Facts):
    """`floor` is the minimum that passes; `healthy` is the value of a fabric without faults."""

    floor: BusBandwidth
    healthy: BusBandwidth


class VmSku(Facts):
    """One VM size. Without GPUs, GPU fields are empty or 0."""

    name: str
    family: str
    """The name of its vCPU quota in `az vm list-usage`; Spot nodes use `lowPriorityCores`."""
    vcpus: int
    memory_gib: int
    temp_gib: int
    temp_is_nvme: bool = False
    """Whether the temporary disk is NVMe. Azure puts no OS disks on the NVMe disks of these families."""
    cache_gib: int = 0
    """The host's cache for disks; 0 if missing or unknown."""
    arch: Literal["amd64", "arm64"] = "amd64"
    nvme: Nvme | None = None
    gpus: int = 0
    gpu_vendor: Literal["nvidia", "amd", ""] = ""
    gpu_model: str = ""
    gpu_product: str = ""
    """The name in nvidia-smi."""
    gpu_memory_gb: int = 0
    gpu_pci_device: str = ""
    """The PCI device id of the GPU, lower-case hex without 0x."""
    gpu_bf16_tflops: float = 0
    """Dense bf16 TFLOPS per GPU; 0 if the GPU has no bf16."""
    gpu_pcie_gbs: float | None = None
    """A GPU's bandwidth to the host, GB/s in one direction; None if unknown."""
    gpu_nvlink_gbs: float | None = None
    """The bandwidth of all links to other GPUs; None without links, or if unknown."""
    gpu_nvlinks_unused: Annotated[tuple[int, ...], BeforeValidator(_tuples)] = ()
    """The NVLinks of a GPU that are never active."""
    infiniband: InfiniBand | None = None
    topology: str | None = None
    nccl: str | None = None
    health: Health = Health()
    nccl_busbw: NcclBusBandwidth | None = None
    reservable: bool = False
    refusal: str | None = None
    """Why this size is not supported yet; None if it is supported."""

    @property
    def supported(self) -> bool:
        return self.refusal is None

    @property
    def local_gib(self) -> int:
        """The size limit of ephemeral OS disks. AKS puts them on the cache if they fit there, or else on the temporary
        disk (Azure/AKS#2672).
        """
        return max(self.cache_gib, self.temp_gib)

    @property
    def os_disk_gib(self) -> int:
        """The largest ephemeral OS disk that Azure certainly accepts.

        Sources disagree on sizes with a cache. Azure's error names cache and temporary disk; a maintainer says that one
        of them is enough (MicrosoftDocs/azure-docs#115366, Azure/AKS#2672). AKS's page on storage only counts the cache
        (https://learn.microsoft.com/azure/aks/concepts-storage).
        """
        return self.cache_gib or (0 if self.temp_is_nvme else self.temp_gib)

    @property
    def gpu_pci_vendor(self) -> str:
        return pci_vendor(self.gpu_vendor) if self.gpu_vendor else ""

    def busbw_floor(self, nodes: int, *, sharp: bool = False) -> float | None:
        """Returns the minimum NCCL all-reduce bus bandwidth that passes, GB/s; None if unknown."""
        return self.nccl_busbw.floor.at(nodes, sharp=sharp) if self.nccl_busbw else None


class Series(Facts):
    """VM sizes without GPUs that differ only in the number of vCPUs."""

    name: str
    """The name of a size, with {} for its number of vCPUs."""
    family: str
    vcpus: list[int]
    gib: int
    """Memory per vCPU; all following fields are per vCPU, too."""
    temp: float = 0
    cache: int = 0

    def sizes(self) -> dict[str, VmSku]:
        return {name: self._size(name, vcpus) for vcpus in self.vcpus if (name := self.name.format(vcpus))}

    def _size(self, name: str, vcpus: int) -> VmSku:
        return VmSku(
            name=name,
            family=self.family,
            vcpus=vcpus,
            memory_gib=vcpus * self.gib,
            temp_gib=int(vcpus * self.temp),
            cache_gib=vcpus * self.cache,
        )


class NcclProfile(Facts):
    """The environment variables of NCCL jobs. `sharp` has additional variables for reduction in the switches."""

    nccl: dict[str, str]
    ucx: dict[str, str]
    sharp: dict[str, str]

    def environment(self, *, sharp: bool) -> dict[str, str]:
        return dict(sorted((self.nccl | self.ucx | (self.sharp if sharp else {})).items()))


class Cpu(Facts):
    """A CPU as NCCL identifies it."""

    vendor: str
    family: int
    model: int


class Link(Facts):
    """The PCI link of GPUs, HCAs and bridges."""

    speed: str
    width: int


class NumaNode(Facts):
    """The first and last CPU of a NUMA node, and for each PCI bridge the PCI domains of its (GPU, HCA) pairs."""

    cpus: Annotated[tuple[int, int], BeforeValidator(_tuples)]
    bridges: Annotated[tuple[tuple[tuple[str, str], ...], ...], BeforeValidator(_tuples)]


class Topology(Facts):
    """The PCI topology of a VM size; `numa` is ordered by NUMA id."""

    cpu: Cpu
    link: Link
    bridge_ids: bool
    numa: Annotated[tuple[NumaNode, ...], BeforeValidator(_tuples)]


class GpuModel(Facts):
    """The facts that all GPUs of one model share."""

    family: str
    compute: str
    """Compute capability, as in 9.0."""
    mig: bool


def written_differently(name: str, known: Iterable[str]) -> list[str]:
    """Returns the sizes with the same letters and digits as `name`, which may lack `Standard_` and the version."""
    own = _letters(name)
    return [each for each in known if own in (_letters(each), re.sub("v[0-9]$", "", _letters(each)))]


def _letters(name: str) -> str:
    return re.sub("^standard|[^a-z0-9]", "", name.lower())


@functools.cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = data.read("skus.yaml")
    return found


def pci_vendor(name: Literal["nvidia", "amd", "mellanox"]) -> str:
    """Returns the vendor's PCI id, lower-case hex without 0x."""
    found: str = _file()["pci_vendors"][name]
    return found


@functools.cache
def gpu_models() -> dict[str, GpuModel]:
    return {name: GpuModel.model_validate(facts) for name, facts in _file()["gpu_models"].items()}


@functools.cache
def catalogue() -> dict[str, VmSku]:
    sizes: dict[str, dict[str, object]] = _file()["skus"]
    found = {name: VmSku.model_validate({"name": name, **facts}) for name, facts in sizes.items()}
    return found | {name: size for each in series() for name, size in each.sizes().items()}


@functools.cache
def series() -> tuple[Series, ...]:
    return tuple(Series.model_validate(facts) for facts in _file()["series"])


def sku(name: str) -> VmSku:
    """Returns the VM size with exactly this name: labels and quotas are case-sensitive, unlike ARM. Raises KeyError."""
    return catalogue()[name]


@functools.cache
def nccl_profiles() -> dict[str, NcclProfile]:
    profiles: dict[str, object] = data.read("nccl.yaml")["profiles"]
    return {name: NcclProfile.model_validate(profile) for name, profile in profiles.items()}


@functools.cache
def topologies() -> dict[str, Topology]:
    return {name: Topology.model_validate(facts) for name, facts in data.read("topologies.yaml").items()}
