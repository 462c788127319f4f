"""Lowers the lending limit of Kueue's slack queue by the number of GPUs that no job can use.

Quotas count all nodes. Without a lower limit, Kueue would admit jobs that no node can run. The limit affects only
waiting jobs; running jobs keep their GPUs. Until 1.0.7, AppWrapper set the limit (project-codeflare/mlbatch,
QUOTA_MAINTENANCE.md).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from api import Object

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
GPU = "nvidia.com/gpu"
POOL = "ai-on-aks/pool"
_CLOSED = ("NoSchedule", "NoExecute")
_KUBERNETES = "node.kubernetes.io/"
"""Prefix of Kubernetes' taints on a node that is cordoned, not ready, not reachable or under pressure."""


@dataclass(frozen=True)
class Pool:
    """A pool with a fixed number of nodes."""

    nodes: int
    gpus: int
    """GPUs of each node."""


@dataclass(frozen=True)
class Rules:
    """The signs of lost GPUs."""

    taint: str
    """The key of the taint after a failed check."""
    labels: Collection[str]
    """Labels of bad nodes, as KEY=VALUE."""
    pools: Mapping[str, Pool]
    """Pools with a fixed size. In other pools, the nodes' capacity counts, without GPUs that were lost before the
    device plugin started.
    """
    warm_up: timedelta
    """The time for the installation of drivers, in which a new node of a fixed pool may have no GPUs."""

    @classmethod
    def of(cls, environment: Mapping[str, str], taint: str, labels: Collection[str]) -> Rules:
        """Reads POOLS, a list of KEY=NODESxGPUS, and WARM_UP_MINUTES."""
        given = (each.partition("=") for each in environment["POOLS"].split(",") if each)
        pools = {key: Pool(*map(int, size.split("x"))) for key, _, size in given}
        return cls(taint, labels, pools, timedelta(minutes=int(environment["WARM_UP_MINUTES"])))


def lost(nodes: Iterable[Object], rules: Rules, now: datetime) -> int:
    """Returns the number of GPUs that no job can use. `nodes` are all nodes with GPUs."""
    left, others = {key: pool.nodes * pool.gpus for key, pool in rules.pools.items()}, 0
    for node in nodes:
        key, capacity = (node["metadata"].get("labels") or {}).get(POOL, ""), _gpus(node, "capacity")
        if key not in left:
            others += max(0, capacity - _offered(node, rules))
        elif not capacity and now - _created(node) < rules.warm_up:
            left[key] -= rules.pools[key].gpus
        else:
            left[key] -= _offered(node, rules)
    return others + sum(max(0, each) for each in left.values())


def _offered(node: Object, rules: Rules) -> int:
    given, spec = node["metadata"].get("labels") or {}, node.get("spec", {})
    taints = [each["key"] for each in spec.get("taints") or [] if each["effect"] in _CLOSED]
    closed = spec.get("unschedulable") or any(key == rules.taint or key.startswith(_KUBERNETES) for key in taints)
    bad = closed or any(f"{key}={value}" in rules.labels for key, value in given.items())
    return 0 if bad else _gpus(node, "allocatable")


def _gpus(node: Object, part: str) -> int:
    return _count(node.get("status", {}).get(part, {}).get(GPU, 0))


def _created(node: Object) -> datetime:
    return datetime.fromisoformat(node["metadata"]["creationTimestamp"])


def change(queue: Object, lost: int) -> tuple[Object, str]:
    """Returns a merge patch and a log line. Both are empty if nothing changes.

    The patch sets the limit to the quota minus the lost GPUs. A queue without a limit lends its whole quota.
    """
    groups, changes = copy.deepcopy(queue["spec"]["resourceGroups"]), ""
    resources = [each for group in groups for flavor in group["flavors"] for each in flavor["resources"]]
    for each in (each for each in resources if each["name"] == GPU):
        quota = _count(each["nominalQuota"])
        lent = max(0, quota - lost)
        if lent != _count(each.get("lendingLimit", quota)):
            each["lendingLimit"], changes = str(lent), f"lends {lent} of {quota} GPUs"
    if not changes:
        return {}, ""
    version = queue["metadata"]["resourceVersion"]  # the patch replaces the list, so it must fail after changes
    return {"metadata": {"resourceVersion": version}, "spec": {"resourceGroups": groups}}, changes


def _count(quantity: object) -> int:
    """Returns a number of devices. Kubernetes may write 1000 as 1k (apimachinery, pkg/api/resource/quantity.go)."""
    return int(str(quantity).replace("k", "000"))
