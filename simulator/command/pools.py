"""Summarizes a cluster's pools: nodes, and free and used GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from config.data import skus
from config.data.scheduling import AGENT_POOL_LABEL, GPU_RESOURCE, POOL_LABEL
from k8s.objects import Object, has_ended, holds
from k8s.resources import allocatable, device_requests
from k8s.scheduling import repelling_taint, toleration

_WORKLOAD = ("volcano.sh/job-name", "batch.kubernetes.io/job-name", "app.kubernetes.io/name")


@dataclass(frozen=True)
class Pool:
    """A node pool: ready and requested nodes, advertised and expected GPUs."""

    name: str
    vm_size: str
    nodes: int
    nodes_asked: int
    gpus: int
    gpus_asked: int
    taken: Mapping[str, int]
    """The number of used GPUs by workload (`<namespace>/<name>`)."""
    free: int
    """Free GPUs on nodes that accept pods."""


def pools(agent_pools: Mapping[str, Object], nodes: Iterable[Object], pods: Iterable[Object]) -> list[Pool]:
    """Returns all pools. `agent_pools` are Azure's properties by name: `nodes` alone would not show empty pools."""
    holders: dict[str, Counter[str]] = {}
    for pod in pods:
        if not has_ended(pod) and (gpus := device_requests(pod).get(GPU_RESOURCE)):
            holders.setdefault(pod["spec"].get("nodeName", ""), Counter())[_workload(pod)] += gpus
    members: dict[str, list[Object]] = {name: [] for name in agent_pools}
    for node in nodes:
        members.setdefault(node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL, ""), []).append(node)
    return [_pool(name, agent_pools.get(name, {}), there, holders) for name, there in sorted(members.items())]


def table(found: Iterable[Pool], title: str) -> Table:
    shown = plain_table(title, "pool", "VM size", "nodes", "GPUs", "taken", "free", "by")
    for pool in found:
        by = "\n".join(f"{name} {gpus}" for name, gpus in sorted(pool.taken.items()))
        use = (_of(pool.gpus, pool.gpus_asked), str(sum(pool.taken.values())), str(pool.free), by)
        has_gpus = pool.gpus_asked or pool.gpus
        shown.add_row(pool.name, pool.vm_size, _of(pool.nodes, pool.nodes_asked), *(use if has_gpus else ["-"] * 3))
    return shown


def plain_table(title: str, *columns: str) -> Table:
    """Returns a narrow table, because a node's name and devices must fit into 80 columns. Long names wrap."""
    layout: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    shown = Table(title=f"\n{title}", title_justify="left", **layout)
    for column in columns:
        shown.add_column(column, overflow="fold")
    return shown


def _pool(name: str, properties: Object, nodes: list[Object], holders: Mapping[str, Counter[str]]) -> Pool:
    labels = [properties.get("nodeLabels") or {}, *(node["metadata"].get("labels", {}) for node in nodes)]
    size = properties.get("vmSize") or labels[-1].get("node.kubernetes.io/instance-type", "")
    asked = properties.get("count", len(nodes))
    taken: Counter[str] = Counter()
    free = 0
    tolerations = [toleration(taint) for taint in properties.get("nodeTaints") or ()]  # jobs of the pool have these too
    for node in nodes:
        held = holders.get(node["metadata"]["name"], Counter())
        taken += held
        if holds(node, "Ready") and repelling_taint({"spec": {"tolerations": tolerations}}, node) is None:
            free += max(0, allocatable(node, GPU_RESOURCE) - held.total())
    offered = sum(allocatable(node, GPU_RESOURCE) for node in nodes)
    sku = skus.catalogue().get(size)
    return Pool(
        name=next((each[POOL_LABEL] for each in labels if POOL_LABEL in each), name),
        vm_size=size,
        nodes=sum(holds(node, "Ready") for node in nodes),
        nodes_asked=asked,
        gpus=offered,
        gpus_asked=asked * sku.gpus if sku else offered,
        taken=taken,
        free=free,
    )


def _workload(pod: Object) -> str:
    labels, name = pod["metadata"].get("labels", {}), pod["metadata"]["name"]
    return f"{pod['metadata']['namespace']}/{next((labels[key] for key in _WORKLOAD if key in labels), name)}"


def _of(there: int, asked: int) -> str:
    return str(there) if there == asked else f"{there}/{asked}"
