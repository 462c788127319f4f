"""VM sizes: what hardware each has and what it must achieve, from `skus.yaml`, `nccl.yaml` and `topologies.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from config.data import data
from config.data.near import near


def _tuples(value: object) -> object:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


class Facts(BaseModel):
    """Base of facts read from data files: immutable, and a key that nobody reads is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class InfiniBand(Facts):
    """InfiniBand HCAs of one node, each seen in the VM as an SR-IOV virtual function (PCI vendor 15b3, class 0207)."""

    hcas: int
    gbps: int
    """Line rate of each HCA, Gb/s."""
    device_id: str
    sharp: bool
    """Whether the fabric reduces in the switches (SHARP)."""
    aks_feature: bool = True
    """Whether AKSInfinibandSupport must be registered for its nodes to be on one fabric, or must not be."""


class Nvme(Facts):
    """Local NVMe disks of one node ("Microsoft NVMe Direct Disk")."""

    count: int
    total_tib: int


class Health(Facts):
    """What the health check expects of a node; None where nothing is published."""

    sockets: int | None = None
    memory: str | None = None
    """What Linux sees of its memory, as NHC writes sizes: 1915071MB (in fact MiB)."""
    memory_percent: int = 3
    """By how much that may be off."""
    gpu_host_gbs: float | None = None
    """Least host to GPU and GPU to host copies, GB/s."""
    gpu_peer_gbs: float | None = None
    """Least GPU to GPU copies, GB/s."""
    nccl_bytes: str | None = None
    """Message size of the all-reduce within the node, as nccl-tests reads it."""
    nccl_gbs: float | None = None
    """Least bus bandwidth of it, GB/s, for sizes that have no `nccl_busbw`."""
    ib_write_gbps: float | None = None
    """Least GPUDirect RDMA write per HCA, Gb/s."""
    ib_loopback_gbs: float | None = None
    """Least bus bandwidth of the all-reduce within the node when all goes through the HCAs, GB/s."""


class Fabric(Facts):
    """Bus bandwidth across nodes, GB/s, without and with SHARP (None where there is no SHARP)."""

    plain: float
    sharp: float | None = None


class BusBandwidth(Facts):
    """NCCL all-reduce bus bandwidth at 16 GiB, GB/s: within one node, across two, across more."""

    one: float
    two: Fabric
    many: Fabric

    def at(self, nodes: int, *, sharp: bool) -> float:
        """The number for this many nodes; without SHARP where the fabric has none."""
        if nodes == 1:
            return self.one
        fabric = self.two if nodes == 2 else self.many
        return fabric.sharp if sharp and fabric.sharp is not None else fabric.plain


class NcclBusBandwidth(Facts):
    """`floor` is the least that passes; `healthy` is what a fabric without faults shows."""

    floor: BusBandwidth
    healthy: BusBandwidth


class VmSku(Facts):
    """One VM size. GPU fields are empty or 0 on sizes without GPUs."""

    name: str
    family: str
    """Name of its vCPU quota, as `az vm list-usage` prints it; Spot counts against `lowPriorityCores` instead."""
    vcpus: int
    memory_gib: int
    temp_gib: int
    """Temporary disk."""
    temp_is_nvme: bool = False
    """Whether that is of NVMe disks, on which Azure puts no OS disk of these families."""
    cache_gib: int = 0
    """The host's cache for disks; 0 where there is none, or none is known."""
    arch: Literal["amd64", "arm64"] = "amd64"
    nvme: Nvme | None = None
    gpus: int = 0
    gpu_vendor: Literal["nvidia", "amd", ""] = ""
    gpu_model: str = ""
    gpu_product: str = ""
    """As nvidia-smi prints it."""
    gpu_memory_gb: int = 0
    gpu_pci_device: str = ""
    """PCI device id of the GPU, lower-case hex without 0x."""
    gpu_bf16_tflops: float = 0
    """Dense bf16 per GPU; 0 where the GPU has none."""
    gpu_pcie_gbs: float | None = None
    """Of a GPU's link to its host, GB/s in one direction; None where nothing is known."""
    gpu_nvlink_gbs: float | None = None
    """Of all its links to other GPUs; None where it has none, or nothing is known."""
    gpu_nvlinks_unused: Annotated[tuple[int, ...], BeforeValidator(_tuples)] = ()
    """The NVLinks of a GPU that are never active."""
    infiniband: InfiniBand | None = None
    topology: str | None = None
    """Entry of `topologies.yaml`."""
    nccl: str | None = None
    """Profile of `nccl.yaml`."""
    health: Health = Health()
    nccl_busbw: NcclBusBandwidth | None = None
    reservable: bool = False
    """Whether capacity of it can be reserved."""
    refusal: str | None = None
    """Why this size is not supported yet; None where it is."""

    @property
    def supported(self) -> bool:
        """Whether pools of this size can be made."""
        return self.refusal is None

    @property
    def local_gib(self) -> int:
        """What an ephemeral OS disk must fit: AKS puts it where it fits, the cache first (Azure/AKS#2672)."""
        return max(self.cache_gib, self.temp_gib)

    @property
    def os_disk_gib(self) -> int:
        """The largest ephemeral OS disk that Azure certainly accepts.

        For a size with a cache, sources disagree. Its error names the cache and the temporary disk, and a maintainer
        says that either will do (MicrosoftDocs/azure-docs#115366, Azure/AKS#2672). AKS's page on storage says that the
        cache alone counts (https://learn.microsoft.com/azure/aks/concepts-storage).
        """
        return self.cache_gib or (0 if self.temp_is_nvme else self.temp_gib)

    @property
    def gpu_pci_vendor(self) -> str:
        """PCI vendor id of the GPU."""
        return pci_vendor(self.gpu_vendor) if self.gpu_vendor else ""

    def busbw_floor(self, nodes: int, *, sharp: bool = False) -> float | None:
        """The least NCCL all-reduce bus bandwidth, GB/s, that passes; None where no limit is known."""
        return self.nccl_busbw.floor.at(nodes, sharp=sharp) if self.nccl_busbw else None


class Series(Facts):
    """VM sizes without GPUs that differ in their number of vCPUs alone."""

    name: str
    """The name of a size, with {} for its number of vCPUs."""
    family: str
    vcpus: list[int]
    gib: int
    """Memory by vCPU, as all that follows."""
    temp: float = 0
    cache: int = 0

    def sizes(self) -> dict[str, VmSku]:
        """Its sizes by name, from the smallest one."""
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
    """Environment variables of NCCL jobs; `sharp` holds those added when the fabric reduces in the switches."""

    nccl: dict[str, str]
    ucx: dict[str, str]
    sharp: dict[str, str]

    def environment(self, *, sharp: bool) -> dict[str, str]:
        """All variables of a job, by name."""
        return dict(sorted((self.nccl | self.ucx | (self.sharp if sharp else {})).items()))


class Cpu(Facts):
    """CPU as NCCL identifies it."""

    vendor: str
    family: int
    model: int


class Link(Facts):
    """PCI link of GPUs, HCAs and bridges."""

    speed: str
    width: int


class NumaNode(Facts):
    """CPUs, first and last, and per PCI bridge its (GPU, HCA) pairs of PCI domains."""

    cpus: Annotated[tuple[int, int], BeforeValidator(_tuples)]
    bridges: Annotated[tuple[tuple[tuple[str, str], ...], ...], BeforeValidator(_tuples)]


class Topology(Facts):
    """PCI topology of a VM size; `numa` is ordered by NUMA id."""

    cpu: Cpu
    link: Link
    bridge_ids: bool
    numa: Annotated[tuple[NumaNode, ...], BeforeValidator(_tuples)]


class GpuModel(Facts):
    """What all GPUs of one model share."""

    family: str
    compute: str
    """Compute capability, as in 9.0."""
    mig: bool
    """Whether it can be partitioned."""


def written_differently(name: str, known: Iterable[str]) -> list[str]:
    """Returns the sizes with a name's letters and digits, with `Standard_` and the version or without them."""
    own = _letters(name)
    return [each for each in known if own in (_letters(each), re.sub("v[0-9]$", "", _letters(each)))]


def _letters(name: str) -> str:
    return re.sub("^standard|[^a-z0-9]", "", name.lower())


class UnknownSku(LookupError):
    """No such VM size; `near` holds names that look like it, best first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.near = near(name, catalogue())
        super().__init__(f"unknown VM size {name!r}")


@functools.cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = data.read("skus.yaml")
    return found


def pci_vendor(name: Literal["nvidia", "amd", "mellanox"]) -> str:
    """The vendor's PCI id, lower-case hex without 0x."""
    found: str = _file()["pci_vendors"][name]
    return found


@functools.cache
def gpu_models() -> dict[str, GpuModel]:
    """NVIDIA's models by name, as `VmSku.gpu_model` has it."""
    return {name: GpuModel.model_validate(facts) for name, facts in _file()["gpu_models"].items()}


@functools.cache
def catalogue() -> dict[str, VmSku]:
    """All VM sizes by name, in the order of the data file."""
    sizes: dict[str, dict[str, object]] = _file()["skus"]
    found = {name: VmSku.model_validate({"name": name, **facts}) for name, facts in sizes.items()}
    return found | {name: size for each in series() for name, size in each.sizes().items()}


@functools.cache
def series() -> tuple[Series, ...]:
    """All series of VM sizes without GPUs."""
    return tuple(Series.model_validate(facts) for facts in _file()["series"])


def sku(name: str) -> VmSku:
    """The VM size of that name; raises UnknownSku. Names are exact: ARM ignores case, labels and quotas do not."""
    try:
        return catalogue()[name]
    except KeyError:
        raise UnknownSku(name) from None


@functools.cache
def nccl_profiles() -> dict[str, NcclProfile]:
    """NCCL environments by profile."""
    profiles: dict[str, object] = data.read("nccl.yaml")["profiles"]
    return {name: NcclProfile.model_validate(profile) for name, profile in profiles.items()}


@functools.cache
def topologies() -> dict[str, Topology]:
    """PCI topologies by name."""
    return {name: Topology.model_validate(facts) for name, facts in data.read("topologies.yaml").items()}
