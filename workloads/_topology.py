"""NCCL's topology file (NCCL_TOPO_FILE): which GPU sits beside which HCA, which a VM's PCI tree does not show."""

from __future__ import annotations

from xml.etree import ElementTree

from config.facts.skus import Link, NumaNode, Topology

_BRIDGE = "0x060400"
_GPU = "0x030200"
_INFINIBAND = "0x020700"
_BRIDGE_IDS = dict.fromkeys(("vendor", "device", "subsystem_vendor", "subsystem_device"), "0x0000")
_MASK_BITS = 96
_WORD_BITS = 32


def topology_xml(topology: Topology) -> str:
    """The file's text: NUMA nodes, the bridges below each, and the GPUs and HCAs that share a bridge."""
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
    """CPUs `first` to `last` as the kernel prints a mask of 96 bits: 32-bit words in hex, the highest first."""
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
