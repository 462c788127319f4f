"""Node labeler: what Azure's host and InfiniBand say of a node, as labels of it."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.operators import Installed, Site
from config.facts.scheduling import ANY_TAINT, GPU_LABEL
from operators._node_tools import CONFINED, NOBODY, daemon_set

NAME = "node-labeler"
"""Of the DaemonSet, of its image in `docker/`, and of its account and rights."""
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
_HYPERV = "/var/lib/hyperv"


class NodeLabeler(Installed):
    """The DaemonSet on GPU nodes, and an account that may read and patch nodes, and nothing else."""

    def __init__(self, name: str, site: Site, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        space = site.namespace.metadata["name"]
        account = kubernetes.core.v1.ServiceAccount(
            f"{NAME}-account", metadata={"name": NAME, "namespace": space}, opts=self.child()
        )
        role = kubernetes.rbac.v1.ClusterRole(
            f"{NAME}-role", metadata={"name": NAME}, rules=RULES, opts=self.child(depends_on=[site.namespace])
        )
        binding = kubernetes.rbac.v1.ClusterRoleBinding(
            f"{NAME}-binding",
            metadata={"name": NAME},
            role_ref={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.metadata["name"]},
            subjects=[{"kind": "ServiceAccount", "name": account.metadata["name"], "namespace": space}],
            opts=self.child(),
        )
        pod = pod_spec(site.image(NAME))
        daemon_set(NAME, site, pod, parent=self, depends_on=[account, binding])
        self.register_outputs({})


def pod_spec(image: str) -> dict[str, Any]:
    """A pod without any privilege: Hyper-V's files and sysfs can be read by everyone (kvp pools have mode 644).

    InfiniBand needs no mount: every container sees the node's HCAs in its own /sys.
    """
    return {
        "nodeSelector": {GPU_LABEL: "true"},
        "tolerations": ANY_TAINT,
        "serviceAccountName": NAME,
        "securityContext": NOBODY,
        "containers": [
            {
                "name": "labeler",
                "image": image,
                "command": ["node-labeler"],
                "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
                "securityContext": CONFINED,
                "volumeMounts": [{"name": "hyperv", "mountPath": _HYPERV, "readOnly": True}],
            }
        ],
        # Not there where Hyper-V's daemon does not run: the node then has InfiniBand's labels only.
        "volumes": [{"name": "hyperv", "hostPath": {"path": _HYPERV, "type": "DirectoryOrCreate"}}],
    }
