"""Puts a workload's files (scripts, configuration, NCCL's topology) into one ConfigMap.

NCCL's topology file (NCCL_TOPO_FILE) maps GPUs to their HCAs, which a VM's PCI tree does not show. Every NCCL job gets
this file and the settings for its hardware (config/data/nccl.yaml).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pulumi_kubernetes as kubernetes

from components.context import GpuPool, WorkloadContext
from config.data.skus import Link, NumaNode, Topology, nccl_profiles, topologies
from workloads._lib.pods import Mount

_BRIDGE = "0x060400"
_GPU = "0x030200"
_INFINIBAND = "0x020700"
_BRIDGE_IDS = dict.fromkeys(("vendor", "device", "subsystem_vendor", "subsystem_device"), "0x0000")
_MASK_BITS = 96
_WORD_BITS = 32
TOPOLOGY = "topology.xml"
_SHARED = Path(__file__).parent.parent / "_scripts"


def topology_xml(topology: Topology) -> str:
    system = ElementTree.Element("system", version="1")
    bridge_number = 0
    for numa_id, node in enumerate(topology.numa):
        cpu = _cpu(system, numa_id, node, topology)
        for pairs in node.bridges:
            bridge_number += 1
            bridge = _pci(cpu, f"ffff:ff:{bridge_number:02x}.0", _BRIDGE, topology.link)
            bridge.attrib.update(_BRIDGE_IDS if topology.bridge_ids else {})
            for gpu, hca in pairs:
                _pci(bridge, f"{gpu}:00:00.0", _GPU, topology.link)
                _pci(bridge, f"{hca}:00:00.0", _INFINIBAND, topology.link)
    ElementTree.indent(system)
    return ElementTree.tostring(system, encoding="unicode") + "\n"


def affinity_mask(first: int, last: int) -> str:
    """Returns the kernel's 96-bit mask of CPUs `first` to `last`: 32-bit words in hex, the highest first."""
    bits = (1 << (last + 1)) - (1 << first)
    words = [bits >> shift & (2**_WORD_BITS - 1) for shift in range(_MASK_BITS - _WORD_BITS, -1, -_WORD_BITS)]
    return ",".join(f"{word:08x}" for word in words)


def _cpu(system: ElementTree.Element, numa_id: int, node: NumaNode, topology: Topology) -> ElementTree.Element:
    return ElementTree.SubElement(
        system,
        "cpu",
        numaid=str(numa_id),
        affinity=affinity_mask(*node.cpus),
        arch="x86_64",
        vendor=topology.cpu.vendor,
        familyid=str(topology.cpu.family),
        modelid=str(topology.cpu.model),
    )


def _pci(parent: ElementTree.Element, busid: str, device_class: str, link: Link) -> ElementTree.Element:
    attributes = {"busid": busid, "class": device_class, "link_speed": link.speed, "link_width": str(link.width)}
    return ElementTree.SubElement(parent, "pci", attributes)


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files by name, their ConfigMap, and their folder in containers."""

    config_map: str
    folder: str
    contents: Mapping[str, str]

    def mount(self) -> Mount:
        """Returns the folder's mount. Its annotation, a digest of the files, replaces the pods after a change."""
        digest = hashlib.sha256(repr(sorted(self.contents.items())).encode()).hexdigest()[:16]
        return Mount(
            name="files",
            path=self.folder,
            source={"configMap": {"name": self.config_map}},
            read_only=True,
            annotations={"ai-on-aks/files": digest},
        )

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def deploy(self, context: WorkloadContext) -> kubernetes.core.v1.ConfigMap:
        return kubernetes.core.v1.ConfigMap(
            self.config_map,
            metadata={"name": self.config_map, "namespace": context.namespace},
            data=dict(self.contents),
            opts=context.child(),
        )


def texts(folder: Path, pattern: str = "*") -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob(pattern))}


def shared(*names: str) -> dict[str, str]:
    return {name: (_SHARED / name).read_text(encoding="utf-8") for name in names}


def topology_path(files: Files) -> str:
    """Returns the path of NCCL's topology file in containers, or an empty string."""
    return files.path(TOPOLOGY) if TOPOLOGY in files.contents else ""


def topology_file(pool: GpuPool) -> dict[str, str]:
    return {TOPOLOGY: topology_xml(topologies()[pool.sku.topology])} if pool.sku.topology else {}


def nccl_variables(pool: GpuPool, files: Files, *, sharp: bool) -> dict[str, str]:
    """Returns the environment of NCCL and UCX on nodes of the pool.

    `sharp` makes the InfiniBand switches reduce. Only benchmarks use it, because trainings have failed with it
    (NVIDIA/nccl#1709, #1219).
    """
    sku = pool.sku
    profile = nccl_profiles()[sku.nccl] if sku.nccl else None
    topology = {"NCCL_TOPO_FILE": files.path(TOPOLOGY)} if TOPOLOGY in files.contents else {}
    return {**(profile.environment(sharp=sharp) if profile else {}), **topology}
