"""What reaches the pods of a team, and what these reach: a NetworkPolicy of the team's namespace. Pure.

Kubernetes stores policies also where no engine enforces them (`network.policy`). InfiniBand bypasses them, since RDMA
does not pass the node's network stack.
"""

from __future__ import annotations

from typing import Any

from config.schema.operators import MLBATCH_NAMESPACE
from operators.monitoring import NAMESPACE as MONITORING_NAMESPACE

NAME = "team-isolation"
_DNS = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]


def policy(pod_range: str) -> dict[str, Any]:
    """Returns the spec of the NetworkPolicy. Kubelets reach all pods of their node in any case.

    In: the team's own pods; KubeRay, which asks the heads of Ray clusters (ray-operator 1.6.2, controllers/ray/utils,
    dashboardclient); Prometheus. Out: the team's own pods, the cluster's DNS, and other addresses: the API server,
    storage, registries of packages and models, and Azure's metadata service. Checks of nodes before jobs read the VM
    size there: without an answer, `check_hw_topology` fails on healthy nodes (azurehpc-health-checks v0.4.5,
    customTests/azure_hw_topology_check.nhc).

    With Cilium, `ipBlock` never matches pods or nodes (AKS's page on Azure CNI Powered by Cilium), so AKS's LocalDNS,
    which this program does not turn on, would need a CiliumNetworkPolicy. With Calico, `ipBlock` matches pods, so their
    range is excluded.
    """
    own: dict[str, Any] = {"podSelector": {}}
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [own, *(_all_of(name) for name in (MLBATCH_NAMESPACE, MONITORING_NAMESPACE))]}],
        "egress": [
            {"to": [own]},
            {"to": [_all_of("kube-system")], "ports": _DNS},
            {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [pod_range]}}]},
        ],
    }


def _all_of(namespace: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
