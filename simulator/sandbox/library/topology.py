"""Reads NCCL topology files, and compares them with a node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

BRIDGE, GPU, NIC = "0x0604", "0x0302", "0x0207"

Topology = dict[str, Any]
"""{"groups": [[bus ids of the GPUs and HCAs under one bridge], ...]} or {"error": reason}."""


def parse(text: str) -> Topology:
    try:
        system = ElementTree.fromstring(text)  # noqa: S314 - the user's own file, in the user's own sandbox
    except ElementTree.ParseError as error:
        return {"error": f"XML parse error: {error}"}
    if system.tag != "system" or system.find("cpu") is None:
        return {"error": f"XML Parse error : expected <system> with <cpu>, got <{system.tag}>"}
    bridges = [pci for pci in system.iter("pci") if pci.get("class", "").startswith(BRIDGE)]
    return {"groups": [[child.get("busid", "").lower() for child in bridge.findall("pci")] for bridge in bridges]}


def found_in(folders: Iterable[str]) -> dict[str, Topology]:
    files: dict[str, Topology] = {}
    for folder in map(Path, folders):
        for file in [folder] if folder.is_file() else sorted(folder.rglob("*.xml")):
            if file.suffix == ".xml":
                files[str(file)] = parse(file.read_text(errors="replace"))
    return files


def aligned(topology: Topology, gpus: Iterable[str], hcas: Iterable[str]) -> bool:
    """Returns whether each GPU is under the same bridge as its HCA."""
    groups = [set(group) for group in topology.get("groups", [])]
    return all(any({gpu, hca} <= group for group in groups) for gpu, hca in zip(gpus, hcas, strict=False))
