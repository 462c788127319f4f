"""Specs of Kueue's queues and quotas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from config.data.allocatable import allocatable
from config.data.scheduling import GPU_LABEL, GPU_RESOURCE
from config.rules.teams import QUEUE_SUFFIX
from config.schema.pools import PoolSettings
from config.schema.teams import TeamSettings
from k8s.quantities import canonical
from k8s.scheduling import tolerations

API = "kueue.x-k8s.io/v1beta2"
FLAVOR, TOPOLOGY_FLAVOR = "default-flavor", "infiniband-flavor"
"""The flavor of GPU nodes without a topology, and the prefix of flavors with one."""
TOPOLOGY = "infiniband"
"""Kueue's feature gate TopologyAwareScheduling is on by default since 0.14 (pkg/features/kube_features.go, v0.19.2)."""
BLOCK = "ai-on-aks/ib-pkey"
"""A label from the node labeler. Nodes with the same value reach each other over InfiniBand."""
COHORT = "default-cohort"
FORCE_PATCH = {"pulumi.com/patchForce": "true"}
"""Annotations of the slack queue. The node-health job sets its lending limit (docker/node-health/slack_queue.py).

The program omits the limit. `pulumi up` sees no change, because the kubernetes plugin only compares what the program
declares, also after a refresh (pulumi-kubernetes, provider/pkg/provider/provider.go, pruneLiveState). `ignore_changes`
could not name the field: the plugin finds no paths through lists (provider/pkg/await/await.go, handleSSAIgnoreFields).
For server-side apply, `spec.resourceGroups` is one field (Kueue's CRD: list type atomic). So after the job's patch, an
update of the quota must be forced, which removes the limit until the job's next round.
"""


def flavor_spec(pools: Iterable[PoolSettings], topology: bool = False) -> dict[str, Any]:
    """Returns a flavor of GPU nodes that tolerates the taints of pools, except Spot. Jobs tolerate Spot themselves."""
    taints = [taint for pool in pools for taint in pool.taints]
    spec = {"nodeLabels": {GPU_LABEL: "true"}, "tolerations": tolerations(taints)}
    return {**spec, "topologyName": TOPOLOGY} if topology else spec


def flavor_name(spec: Mapping[str, Any]) -> str:
    """Returns a flavor's name. With a topology, it depends on the spec, because such a flavor is immutable
    (apis/kueue/v1beta2/resourceflavor_types.go, v0.19.2, "tolerations are immutable when topologyName is set").
    """
    if "topologyName" not in spec:
        return FLAVOR
    return f"{TOPOLOGY_FLAVOR}-{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:6]}"


def topology_spec() -> dict[str, Any]:
    """Returns a topology with two levels, blocks and nodes, so that Kueue counts free resources per node."""
    return {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": "kubernetes.io/hostname"}]}


def queue_name(team: str) -> str:
    return f"{team}{QUEUE_SUFFIX}"


def cluster_queue_spec(
    quotas: dict[str, str],
    namespace: str | None,
    limits: Mapping[str, dict[str, str]] | None = None,
    flavor: str = FLAVOR,
) -> dict[str, Any]:
    """Returns the ClusterQueue of a team. Without `namespace`, no namespace can submit jobs to it.

    If jobs of a quota's owner wait, borrowers give back the quota immediately, regardless of priorities. In a queue,
    jobs of a higher priority come first, then older jobs. MLBatch's value of `borrowWithinCohort` does not stop
    preemption by borrowers: with fair sharing (`configuration` in operators/kueue), a job that borrows preempts jobs of
    a team that has borrowed more (v0.19.2, pkg/scheduler/flavorassigner/flavorassigner.go:1382,
    canPreemptWhileBorrowing; preemption/fairsharing/strategy.go). `limits` has the limits of lending and borrowing.
    """
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}} if namespace else {}
    resources = [
        {"name": name, "nominalQuota": amount, **{limit: shares[name] for limit, shares in (limits or {}).items()}}
        for name, amount in quotas.items()
    ]
    return {
        **selector,
        "cohortName": COHORT,
        "preemption": {
            "withinClusterQueue": "LowerOrNewerEqualPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "Never"},
        },
        "resourceGroups": [
            {"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": resources}]},
        ],
    }


def team_queue_spec(
    name: str, team: TeamSettings, pools: Sequence[PoolSettings], rdma_resource: str, flavor: str = FLAVOR
) -> dict[str, Any]:
    """Returns a team's own queue. Its limits of GPUs also limit all other resources in proportion."""
    given = {"lendingLimit": team.lending_limit, "borrowingLimit": team.borrowing_limit}
    limits = {key: quotas(gpus, pools, rdma_resource) for key, gpus in given.items() if gpus is not None}
    return cluster_queue_spec(quotas(team.gpus, pools, rdma_resource), name, limits, flavor)


def quotas(gpus: int, pools: Sequence[PoolSettings], rdma_resource: str) -> dict[str, str]:
    """Returns a quota of `gpus` GPUs, and of all other resources in proportion.

    If pools differ, uses the largest amount, so that a job of whole nodes fits on every pool.
    """

    def share(of_node: Callable[[PoolSettings], int]) -> int:
        return max(-(-gpus * of_node(pool) // pool.gpus) for pool in pools)

    rdma = share(lambda pool: pool.sku.infiniband.hcas if pool.sku.infiniband else 0)
    any_rdma = any(pool.sku.infiniband for pool in pools)
    return {
        "cpu": canonical(f"{share(lambda pool: allocatable(pool.sku, pool.pods).cpu_millis)}m"),
        "memory": canonical(f"{share(lambda pool: allocatable(pool.sku, pool.pods).memory_kib)}Ki"),
        GPU_RESOURCE: canonical(str(gpus)),
        **({rdma_resource: canonical(str(rdma))} if any_rdma else {}),
        "pods": canonical(str(share(lambda pool: pool.pods))),
    }
