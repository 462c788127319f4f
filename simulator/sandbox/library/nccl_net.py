"""Selects NCCL's network on a node, from its devices and environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.sandbox.library import view
from simulator.world.network import INFINIBAND, SOCKET

INTERFACES = ("lo", "eth0")
NCCL_CONFIGURATION = Path("/etc/nccl.conf")


@dataclass(frozen=True)
class Network:
    """The network of one node. `hcas` are entries of world.json, and empty with TCP."""

    transport: str
    hcas: tuple[Mapping[str, Any], ...] = ()

    @property
    def link_layers(self) -> set[str]:
        return {str(hca["link_layer"]) for hca in self.hcas}

    @property
    def speeds(self) -> tuple[float, ...]:
        """The speed of each HCA to other nodes, as a share of its rated speed."""
        return tuple(min(hca["gbps"], hca["rail_gbps"]) / hca["rated_gbps"] for hca in self.hcas)


def choose(known: view.View, pod: view.Pod, variables: Mapping[str, str]) -> Network:
    """Returns InfiniBand (or RoCE) if the pod can open an active HCA that NCCL_IB_HCA allows, otherwise TCP."""
    if variables.get("NCCL_IB_DISABLE", "0") == "1" or variables.get("NCCL_NET", "IB").lower() == "socket":
        return Network(SOCKET)
    pattern = variables.get("NCCL_IB_HCA", "")
    usable = [hca for hca in known.hcas_of(pod) if hca["state"] == "ACTIVE" and selected(hca["name"], pattern)]
    return Network(INFINIBAND, tuple(usable)) if usable else Network(SOCKET)


def selected(name: str, pattern: str) -> bool:
    """Returns whether the value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME selects a name. All ports have number 1.

    The value lists prefixes, or after `=` whole names. With `^` in front, it excludes them.
    """
    excluding, rest = pattern.startswith("^"), pattern.removeprefix("^")
    exact, rest = rest.startswith("="), rest.removeprefix("=")
    entries = [entry.partition(":") for entry in rest.split(",") if entry]
    if not entries:
        return True
    hit = any(port in ("", "1") and (name == entry if exact else name.startswith(entry)) for entry, _, port in entries)
    return hit != excluding


def interface(variables: Mapping[str, str]) -> str | None:
    """Returns the interface for bootstrap and TCP, or None if NCCL_SOCKET_IFNAME matches none."""
    pattern = variables.get("NCCL_SOCKET_IFNAME", "")
    candidates = [name for name in INTERFACES if selected(name, pattern) and (pattern or name != "lo")]
    return candidates[-1] if candidates else None


def nccl_configuration() -> dict[str, str]:
    """Returns the variables in /etc/nccl.conf, which NCCL reads in every process."""
    lines = NCCL_CONFIGURATION.read_text().splitlines() if NCCL_CONFIGURATION.exists() else []
    pairs = [line.strip().partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}
