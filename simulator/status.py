"""`python -m simulator status`: what runs, which file serves each plugin, and what is simulated how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from simulator import daemon, environment, paths, stand_ins
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet import volcano
from simulator.sandbox import sandbox
from simulator.world.faults import FaultStore

Object = dict[str, Any]


def show(console: Console) -> int:
    """Exit code 0 when the simulator runs, 3 when it does not (as service managers do)."""
    state = daemon.running_state()
    running = bool(state and state.get("ready"))
    console.print(f"simulated Azure: {_running(state)}")
    for stand_in in stand_ins.ALL:
        console.print(f"{stand_in.name}: {_served(stand_in.serving())}", highlight=False)
    reason = sandbox.available()
    console.print(f"sandbox for scripts: {'bubblewrap' if reason is None else f'none, their pods are faked: {reason}'}")
    console.print(f"Volcano: real {volcano.version_running()} under the chart of 1.15 (newer ones do not build here)")
    faults = FaultStore().load()
    console.print("faults: " + (", ".join(map(str, faults)) or "none"))
    if running and environment.kubeconfig_file().exists():
        _cluster(console)
    return 0 if running else 3


def _running(state: Object | None) -> str:
    if state is None:
        return "stopped"
    return f"runs (pid {state['pid']})" if state.get("ready") else "starting"


def _served(file: Path) -> str:
    own = file.is_relative_to(paths.ROOT / "simulator")
    return f"stand-in ({file.relative_to(paths.ROOT)})" if own else f"official ({file})"


def _cluster(console: Console) -> None:
    kube = KubeClient.from_kubeconfig(environment.kubeconfig_file().read_text())
    table = Table("node", "size", "ready", "GPUs", "HCAs", title="nodes")
    try:
        for node in kube.list("v1", "Node"):
            table.add_row(*_node(node))
    except (ApiError, httpx.HTTPError) as error:
        console.print(f"the cluster does not answer: {error}")
        return
    console.print(table)


def _node(node: Object) -> tuple[str, ...]:
    status, labels = node.get("status", {}), node["metadata"]["labels"]
    ready = next((c["status"] for c in status.get("conditions", []) if c["type"] == "Ready"), "Unknown")
    offered = status.get("allocatable", {})
    hcas = [f"{name}: {count}" for name, count in sorted(offered.items()) if "/" in name and name != "nvidia.com/gpu"]
    size = labels.get("node.kubernetes.io/instance-type", "")
    return node["metadata"]["name"], size, ready, offered.get("nvidia.com/gpu", "-"), ", ".join(hcas) or "-"
