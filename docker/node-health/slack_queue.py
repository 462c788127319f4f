"""Lowers what Kueue's slack queue lends by the GPUs that no job can get.

Quotas count all nodes, so without this Kueue admits jobs that have nowhere to run. Jobs that run keep their GPUs: the
limit holds for jobs that wait. AppWrapper did this until 1.0.7 (project-codeflare/mlbatch, QUOTA_MAINTENANCE.md).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping

from api import Object

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
GPU = "nvidia.com/gpu"
POOL = "ai-on-aks/pool"
"""The label of a node's pool."""
_CLOSED = ("NoSchedule", "NoExecute")
_KUBERNETES = "node.kubernetes.io/"
"""Taints of Kubernetes itself: a node that is cordoned, not ready, not reachable or under pressure."""


def unusable(node: Object, taint: str, labels: Collection[str], pools: Mapping[str, int]) -> int:
    """Returns how many GPUs of the node no job can get.

    Args:
        node: The node.
        taint: Key of the taint of a failed check.
        labels: KEY=VALUE of nodes that are bad.
        pools: The GPUs of each node of a pool. For other pools, the node's capacity counts, which leaves out GPUs that
            were lost before the device plugin started.
    """
    status, given, spec = node.get("status", {}), node["metadata"].get("labels") or {}, node.get("spec", {})
    capacity, offered = (_count(status.get(part, {}).get(GPU, 0)) for part in ("capacity", "allocatable"))
    expected = max(capacity, pools.get(given.get(POOL, ""), 0))
    taints = [each["key"] for each in spec.get("taints") or [] if each["effect"] in _CLOSED]
    closed = spec.get("unschedulable") or any(key == taint or key.startswith(_KUBERNETES) for key in taints)
    bad = closed or any(f"{key}={value}" in labels for key, value in given.items())
    return expected if bad else max(0, expected - offered)


def change(queue: Object, lost: int) -> tuple[Object, str]:
    """Returns the merge patch after which the queue lends its quota less the lost GPUs, empty for none, and a log line.

    Without a limit the queue lends its whole quota.
    """
    groups, said = copy.deepcopy(queue["spec"]["resourceGroups"]), ""
    resources = [each for group in groups for flavor in group["flavors"] for each in flavor["resources"]]
    for each in (each for each in resources if each["name"] == GPU):
        quota = _count(each["nominalQuota"])
        lent = max(0, quota - lost)
        if lent != _count(each.get("lendingLimit", quota)):
            each["lendingLimit"], said = str(lent), f"lends {lent} of {quota} GPUs"
    if not said:
        return {}, ""
    version = queue["metadata"]["resourceVersion"]  # the list is replaced whole
    return {"metadata": {"resourceVersion": version}, "spec": {"resourceGroups": groups}}, said


def _count(quantity: object) -> int:
    """Returns a number of devices, of which 1000 is written as 1k (apimachinery, pkg/api/resource/quantity.go)."""
    return int(str(quantity).replace("k", "000"))
