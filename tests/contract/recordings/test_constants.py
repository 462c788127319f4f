"""Compares otherwise unchecked constants with published lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data import data, scheduling, skus
from simulator.azure.types.role_assignment.allowed import built_in

FOLDER = Path(__file__).parent
DEVICES: dict[str, Any] = yaml.safe_load((FOLDER / "pci_devices.yaml").read_text("utf-8"))
NODES: dict[str, Any] = yaml.safe_load((FOLDER / "nodes.yaml").read_text("utf-8"))["nodes"]


@pytest.mark.parametrize("name", sorted(name for name, size in skus.catalogue().items() if size.gpus))
def test_pci_ids_are_those_of_the_gpus(name: str) -> None:
    size = skus.sku(name)
    listed = DEVICES[size.gpu_vendor][size.gpu_pci_device]
    memory = re.search(r"(\d+)GB", listed)
    assert (size.gpu_model in listed, memory is None or int(memory[1])) in {(True, True), (True, size.gpu_memory_gb)}


@pytest.mark.parametrize("name", sorted(name for name, size in skus.catalogue().items() if size.infiniband))
def test_pci_ids_are_those_of_the_network_cards(name: str) -> None:
    """Cards are virtual functions, and ConnectX-6 has at most 200 Gb/s."""
    card = skus.sku(name).infiniband
    assert card is not None
    listed = DEVICES["mellanox"][card.device_id]
    assert ("Virtual Function" in listed, "ConnectX-6" in listed) == (True, card.gbps <= 200)


def test_role_ids_are_those_of_simulated_azure() -> None:
    assert data.read("azure_roles.yaml").items() <= {role["name"]: role["id"] for role in built_in().values()}.items()


def test_recorded_nodes_have_the_labels_of_node_selectors() -> None:
    recorded = {label for node in NODES.values() for label in (*node.get("labels", ()), *node.get("names", ()))}
    chosen = {
        scheduling.ACCELERATOR_LABEL,
        scheduling.AGENT_POOL_LABEL,
        scheduling.SPOT_LABEL,
        *scheduling.SYSTEM_NODES,
    }
    assert chosen <= recorded
    assert scheduling.SPOT_TAINT in {taint for node in NODES.values() for taint in node.get("taints", ())}
