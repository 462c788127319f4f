from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from operators.local_nvme_scratch import pod_spec
from simulator.sandbox import machine
from tests.unit.simulator.sandbox.node import Node

POD = pod_spec("registry.test/local-nvme-scratch:1")
SETUP = POD["initContainers"][0]
DISKS = 3


def small_node(folder: Path) -> Node:
    """The node has few disks, because each costs ten processes."""
    made = Node(folder)
    made.change(nvme=made.hardware.nvme[:DISKS])
    return made


def set_up(node: Node, **environment: str) -> tuple[int, str]:
    extra = [{"name": name, "value": value} for name, value in environment.items()]
    return node.run(POD, SETUP | {"env": [*SETUP["env"], *extra]})


def mounts(node: Node) -> list[str]:
    return (node.root / machine.MOUNTS).read_text().splitlines()


def raid(**fields: Any) -> str:
    return json.dumps({"raid": {"name": "any:nvme-scratch", "uuid": "u", "devices": DISKS, "number": 0, **fields}})
