"""Finds simulated virtual networks for `--inside` and `status`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simulator.azure import inside
from simulator.azure.ids import parse_id
from simulator.azure.store import Record, records
from simulator.azure.types.network_interface import rules as interfaces
from simulator.azure.types.virtual_machine import rules as machines
from simulator.azure.types.virtual_network.rules import TYPE as NETWORKS
from simulator.host import paths

_PROJECT = "ai-on-aks"
"""The start of each resource group's name, unless the stack file sets the name."""


def find(text: str) -> list[str]:
    """Returns the labels of the networks with this name, group or stack, or of all networks for an empty text."""
    known = _records()
    if not text:
        return sorted(inside.label(record.id) for record in _of(known, NETWORKS))
    found = inside.find(known, text) or inside.find(known, re.sub("[^A-Za-z0-9]+", "-", f"{_PROJECT}-{text}"))
    return sorted(inside.label(network) for network in found)


def jump_boxes() -> dict[str, list[str]]:
    known = _records()
    found = {record.id: record for record in known}
    boxes: dict[str, list[str]] = {inside.label(record.id): [] for record in _of(known, NETWORKS)}
    for machine in _of(known, machines.TYPE):
        interface = found.get(parse_id(machines.interface(machine.properties)))
        network = found.get(interfaces.network_of(interface)) if interface else None
        if network:
            boxes[inside.label(network.id)].append(machine.id.name)
    return boxes


def _records() -> Sequence[Record]:
    return records(paths.home() / "azure")


def _of(known: Sequence[Record], kind: str) -> list[Record]:
    return [record for record in known if record.id.type.lower() == kind.lower()]
