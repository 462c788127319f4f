"""Emulates the metrics of node exporters about InfiniBand ports."""

from __future__ import annotations

from collections.abc import Sequence

from k8s.objects import Object
from simulator.kubelet.programs import Holder
from simulator.operators._metrics import Family, exposition
from simulator.world.hardware import NodeHardware

_PORT = 9100
_STATES = {"ACTIVE": 4, "INIT": 2, "DOWN": 1}
"""Numbers of port states (the kernel's ib_verbs.h), which node_exporter's collector `infiniband` reports."""


def port(container: Object) -> int:
    return int(next((each["containerPort"] for each in container.get("ports", [])), _PORT))


def text(hardware: NodeHardware, _: Sequence[Holder]) -> str:
    """Returns the ports' states, and their rates in bytes per second."""
    ports = [(hca, {"device": hca.name, "port": "1"}) for hca in hardware.hcas if hca.link_layer == "InfiniBand"]
    state = Family(
        "node_infiniband_state_id", "State of the InfiniBand port (0: no change, 1: down, 2: init, 4: active)"
    )
    rate = Family("node_infiniband_rate_bytes_per_second", "Maximum signal transfer rate")
    state.samples.extend((labels, _STATES.get(hca.state.upper(), 0)) for hca, labels in ports)
    rate.samples.extend((labels, hca.gbps * 10**9 / 8) for hca, labels in ports)
    return exposition([state, rate])
