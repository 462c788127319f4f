"""Node labeler: labels GPU nodes with data about the Azure host and InfiniBand, which Azure's support asks for."""

from __future__ import annotations

from typing import Any

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, GPU_LABEL
from config.schema.operators import NODE_TOOLS_NAMESPACE, OperatorSettings
from operators._lib.node_tools import CONFINED, UNPRIVILEGED, daemon_set
from operators._lib.rights import cluster_account

NAME = "node-labeler"
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
_HYPERV = "/var/lib/hyperv"


class NodeLabeler(Installed[OperatorSettings]):
    """The DaemonSet on GPU nodes, and an account that may only read and patch nodes."""

    def create(self, context: InstallContext, settings: OperatorSettings) -> None:
        granted = cluster_account(NAME, context, RULES, parent=self, after=[context.namespace])
        daemon_set(NAME, context, pod_spec(context.image(NAME)), parent=self, depends_on=granted)


def pod_spec(image: str) -> dict[str, Any]:
    """Returns an unprivileged pod: every user can read Hyper-V's files (kvp pools have mode 644) and sysfs.

    Every container sees the node's HCAs in its own /sys, without a mount.
    """
    return {
        "nodeSelector": {GPU_LABEL: "true"},
        "tolerations": ANY_TAINT,
        "serviceAccountName": NAME,
        "securityContext": UNPRIVILEGED,
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
        # The folder is missing without Hyper-V's daemon. The node then only gets the labels of InfiniBand.
        "volumes": [{"name": "hyperv", "hostPath": {"path": _HYPERV, "type": "DirectoryOrCreate"}}],
    }


class _NodeLabeler(Operator[OperatorSettings]):
    name = NAME
    title = "the node labeler"
    summary = "Labels GPU nodes with data that Azure's support asks for."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = OperatorSettings
    component = NodeLabeler
    is_for_gpu_pools = True


OPERATOR = _NodeLabeler()
