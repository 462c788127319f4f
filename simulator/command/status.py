"""`python -m simulator status`: shows what runs, which plugins are emulated, GPUs by workload, and devices of nodes."""

from __future__ import annotations

from pathlib import Path

import httpx
import yaml
from rich.console import Console

from config.data.scheduling import GPU_RESOURCE
from k8s.objects import Object, holds
from simulator.azure.store import Record, records
from simulator.azure.types.agent_pool import life
from simulator.azure.types.agent_pool.rules import TYPE as AGENT_POOLS
from simulator.azure.types.managed_cluster.rules import TYPE as CLUSTERS
from simulator.command import daemon_state, emulated_plugins, environment, networks, pools
from simulator.host import paths
from simulator.kube.client import ApiError, KubeClient
from simulator.operators import REAL, autopilot
from simulator.sandbox import sandbox
from simulator.world.faults import FaultStore


def show(console: Console) -> int:
    """Prints the status. Returns 0 if the simulator runs, else 3, like service managers."""
    state = daemon_state.running_state()
    running = bool(state and state.get("ready"))
    console.print(f"simulated Azure: {_running(state)}")
    for plugin in emulated_plugins.ALL:
        console.print(f"{plugin.name}: {_served(plugin.serving())}", highlight=False)
    reason = sandbox.available()
    console.print(f"sandbox for scripts: {'bubblewrap' if reason is None else f'none, so no script runs: {reason}'}")
    for line in (*(operator.status for operator in REAL), autopilot.STATUS):
        console.print(line, highlight=False)
    faults = FaultStore().load()
    console.print("faults: " + (", ".join(map(str, faults)) or "none"))
    for network, machines in networks.jump_boxes().items():
        names = f"machines {', '.join(machines)}" if machines else "no machines"
        console.print(f"network {network}: {names}; to enter it: make shell INSIDE={network}", highlight=False)
    if running and environment.kubeconfig_file().exists():
        _clusters(console)
    return 0 if running else 3


def _running(state: Object | None) -> str:
    if state is None:
        return "stopped"
    return f"runs (pid {state['pid']})" if state.get("ready") else "starting"


def _served(file: Path) -> str:
    own = file.is_relative_to(paths.ROOT / "simulator")
    return f"emulated ({file.relative_to(paths.ROOT)})" if own else f"official ({file})"


def _clusters(console: Console) -> None:
    """Prints pools and nodes of each cluster. Contexts are named after clusters' folders."""
    config = yaml.safe_load(environment.kubeconfig_file().read_text())
    names = [context["name"] for context in config["contexts"]]
    stopped = {paths.cluster(each.id.text).name: each.id for each in records(paths.home() / "azure") if _stopped(each)}
    for name in names:
        if found := stopped.get(name):
            start = f"az aks start --resource-group {found.group} --name {found.name}    # in `make shell`"
            console.print(f"the cluster {name} is stopped. To start it: {start}", markup=False, soft_wrap=True)
            continue
        try:
            own = (paths.home() / "clusters" / name / "admin.kubeconfig").read_text()
            with KubeClient.from_kubeconfig(own) as kube:
                nodes, pods = kube.list("v1", "Node"), kube.list("v1", "Pod")
        except (ApiError, httpx.HTTPError) as error:
            console.print(f"the cluster {name} does not answer: {error}", markup=False)
            continue
        of = f" of {name}" if len(names) > 1 else ""
        console.print(pools.table(pools.pools(_agent_pools(name), nodes, pods), f"pools{of}"))
        table = pools.plain_table(f"nodes{of}", "node", "state", "GPUs", "HCAs")
        for node in nodes:
            table.add_row(*_node(node))
        console.print(table)


def _stopped(record: Record) -> bool:
    return record.id.type == CLUSTERS and life.stopped(record)


def _agent_pools(cluster: str) -> dict[str, Object]:
    found = [record for record in records(paths.home() / "azure") if record.id.type == AGENT_POOLS]
    return {
        record.id.name: record.properties for record in found if paths.cluster(record.id.parent.text).name == cluster
    }


def _node(node: Object) -> tuple[str, ...]:
    state = ("Ready" if holds(node, "Ready") else "NotReady") + (
        ",SchedulingDisabled" if node["spec"].get("unschedulable") else ""
    )
    offered = node.get("status", {}).get("allocatable", {})
    hcas = [f"{name}: {count}" for name, count in sorted(offered.items()) if "/" in name and name != GPU_RESOURCE]
    return node["metadata"]["name"], state, offered.get(GPU_RESOURCE, "-"), ", ".join(hcas) or "-"
