"""Queues and their quotas, as Kueue's resources have them. Pure."""

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
"""Of the GPU nodes, without a topology, and how the names of those with one begin."""
TOPOLOGY = "infiniband"
"""Kueue's feature gate TopologyAwareScheduling is on by default since 0.14 (pkg/features/kube_features.go, v0.19.2)."""
BLOCK = "ai-on-aks/ib-pkey"
"""The node labeler's label: nodes with the same value reach each other over InfiniBand."""
COHORT = "default-cohort"
TAKES_BACK = {"pulumi.com/patchForce": "true"}
"""Annotations of the slack queue. The node-health job sets its lending limit (docker/node-health/slack_queue.py).

The program leaves the limit out, and the kubernetes plugin compares only what the program states, also after a refresh
(pulumi-kubernetes, provider/pkg/provider/provider.go, pruneLiveState): so `pulumi up` sees no change. `ignore_changes`
could not name the field: the plugin does not find paths through lists (provider/pkg/await/await.go,
handleSSAIgnoreFields). For server-side apply, `spec.resourceGroups` is one field (Kueue's CRD: list type atomic). After
the job's patch, an update of the quota is therefore a conflict unless it is forced. A forced update removes the
limit, and the job's next round sets it again.
"""


def flavor_spec(pools: Iterable[PoolSettings], topology: bool = False) -> dict[str, Any]:
    """Jobs that are admitted go to GPU nodes, whatever taints their pools have; to Spot nodes only if they say so."""
    taints = [taint for pool in pools for taint in pool.taints]
    spec = {"nodeLabels": {GPU_LABEL: "true"}, "tolerations": tolerations(taints)}
    return {**spec, "topologyName": TOPOLOGY} if topology else spec


def flavor_name(spec: Mapping[str, Any]) -> str:
    """With a topology, another for other tolerations: such a flavor lets none of its fields be changed
    (apis/kueue/v1beta2/resourceflavor_types.go, v0.19.2, "tolerations are immutable when topologyName is set").
    """
    if "topologyName" not in spec:
        return FLAVOR
    return f"{TOPOLOGY_FLAVOR}-{hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:6]}"


def topology_spec() -> dict[str, Any]:
    """Blocks of nodes, and the nodes in them: the last level has Kueue count what is free node by node."""
    return {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": "kubernetes.io/hostname"}]}


def queue_name(team: str) -> str:
    """Of its ClusterQueue."""
    return f"{team}{QUEUE_SUFFIX}"


def cluster_queue_spec(
    quotas: dict[str, str],
    namespace: str | None,
    limits: Mapping[str, dict[str, str]] | None = None,
    flavor: str = FLAVOR,
) -> dict[str, Any]:
    """A team's share of the cluster, or one that no namespace can queue for.

    Whoever borrows gives back at once, whatever the priorities, when the owner's jobs wait. In its own queue a team's
    more important or older job comes first. `borrowWithinCohort` is MLBatch's, and keeps nobody from ending others'
    jobs to borrow: by fair sharing (component.py), one that has to borrow ends those of who has borrowed more (v0.19.2,
    pkg/scheduler/flavorassigner/flavorassigner.go:1382, canPreemptWhileBorrowing; preemption/fairsharing/strategy.go).
    `limits` are of lending and borrowing.
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
    """Of a team's own queue: what is said of its GPUs holds for their share of all else."""
    said = {"lendingLimit": team.lending_limit, "borrowingLimit": team.borrowing_limit}
    limits = {key: quotas(gpus, pools, rdma_resource) for key, gpus in said.items() if gpus is not None}
    return cluster_queue_spec(quotas(team.gpus, pools, rdma_resource), name, limits, flavor)


def quotas(gpus: int, pools: Sequence[PoolSettings], rdma_resource: str) -> dict[str, str]:
    """So many GPUs, and of all else their share of what a node offers.

    Where pools differ, it is the most that nodes of one have beside a GPU, so that a job of whole nodes fits anywhere.
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
