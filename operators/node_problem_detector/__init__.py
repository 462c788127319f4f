"""node-problem-detector on GPU nodes: a DaemonSet for each VM size, and the alerts of its conditions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import ANY_TAINT, GPU_LABEL, INSTANCE_TYPE
from config.data.skus import VmSku
from config.schema.operators import MONITORING, NODE_TOOLS_NAMESPACE, Capability, OperatorSettings
from k8s.templates import filled
from operators._lib.node_tools import Manifest, daemon_set
from operators._lib.rights import RBAC, admission_policy, cluster_account
from operators.node_problem_detector.alerts import rules
from operators.node_problem_detector.conditions import configurations

NAME = "node-problem-detector"
POLICY = f"{NAME}-own-node"
NODE_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
]
"""The rights of node-problem-detector, which reads its node once, and patches conditions (v1.34.0,
pkg/exporters/k8sexporter/problemclient/problem_client.go).
"""
EVENT_RULES = [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]
_EVENTS_OF_NODES = "default"
"""The namespace of events about objects without a namespace (client-go, tools/record/event.go)."""
_CONFIG, _LOGS = "/config", "/var/log"
_HOST_PATHS = {"logs": _LOGS, "nvidia": "/run/nvidia", "mellanox": "/run/mellanox"}


class NodeProblemDetectorSettings(OperatorSettings):
    """Settings of node-problem-detector. It is off by default, because its pods have full access to GPU nodes."""

    enabled: bool = False
    """Whether the stack installs it."""


class NodeProblemDetector(Installed[NodeProblemDetectorSettings]):
    """One DaemonSet for each VM size, because limits in its configuration depend on the VM size."""

    def create(self, context: InstallContext, settings: NodeProblemDetectorSettings) -> None:
        self._context, self._space = context, context.namespace.metadata["name"]
        granted = self._rights()
        ofed = "network-operator" in context.installed
        for sku in {pool.sku.name: pool.sku for _, pool in sorted(context.pools.items())}.values():
            files = configurations(sku, ofed=ofed)
            called = daemon_set_name(sku)
            config = kubernetes.core.v1.ConfigMap(
                f"{called}-config",
                # Pods read the ConfigMap only at start, so changed files need a new name and new pods.
                metadata={"name": f"{called}-{_digest(files)}", "namespace": self._space},
                data=files,
                opts=self.child(),
            )
            pod = pod_spec(context.image(NAME), sku, f"{called}-{_digest(files)}", sorted(files))
            daemon_set(called, context, pod, parent=self, depends_on=[config, *granted])
        if MONITORING in context.installed:
            self._alerts(context.installed[MONITORING])

    def _rights(self) -> list[pulumi.Resource]:
        first = [self._context.namespace]
        bound = admission_policy(POLICY, policy_spec(), parent=self, after=first)
        account, of_nodes = cluster_account(NAME, self._context, NODE_RULES, parent=self, after=[bound])
        in_default = {"name": NAME, "namespace": _EVENTS_OF_NODES}
        events = kubernetes.rbac.v1.Role(
            f"{NAME}-events-role", metadata=in_default, rules=EVENT_RULES, opts=self.child(depends_on=first)
        )
        of_events = kubernetes.rbac.v1.RoleBinding(
            f"{NAME}-events-binding",
            metadata=in_default,
            role_ref={"apiGroup": RBAC, "kind": "Role", "name": events.metadata["name"]},
            subjects=[{"kind": "ServiceAccount", "name": account.metadata["name"], "namespace": self._space}],
            opts=self.child(),
        )
        return [account, of_nodes, of_events]

    def _alerts(self, monitoring: Installed[Any]) -> None:
        kubernetes.apiextensions.CustomResource(
            f"{NAME}-alerts",
            api_version="monitoring.coreos.com/v1",
            kind="PrometheusRule",
            metadata={"name": NAME, "namespace": self._space},
            spec=rules(),
            opts=self.child(depends_on=list(monitoring.followed)),
        )


def policy_spec() -> Manifest:
    user = f"system:serviceaccount:{NODE_TOOLS_NAMESPACE}:{NAME}"
    return filled(Path(__file__).with_name("policy.yaml"), user=user)


def daemon_set_name(sku: VmSku) -> str:
    return f"{NAME}-{sku.name.removeprefix('Standard_').replace('_', '-').lower()}"


def _digest(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:8]


def pod_spec(image: str, sku: VmSku, config: str, files: list[str]) -> Manifest:
    """Returns a pod that opens no port: AKS's node-problem-detector uses the node's ports 20256 and 20257.

    kube-state-metrics reports the conditions instead.
    """
    monitors = ",".join(f"{_CONFIG}/{file}" for file in files)
    return {
        "nodeSelector": {GPU_LABEL: "true", INSTANCE_TYPE: sku.name},
        "tolerations": ANY_TAINT,
        # The pod reports why other pods cannot run, so it must not wait for resources.
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        "containers": [
            {
                "name": NAME,
                "image": image,
                "command": ["/node-problem-detector"],
                "args": [
                    "--logtostderr",
                    f"--config.custom-plugin-monitor={monitors}",
                    "--port=0",
                    "--prometheus-port=0",
                ],
                "env": [
                    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                    {"name": "KERNEL_LOGS", "value": _LOGS},
                ],
                "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
                # nvidia-smi opens each GPU of the node. A pod that requests no GPUs must be privileged for that, or use
                # NVIDIA's runtime class, but a node without driver starts no pod of that class.
                "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
                "volumeMounts": _mounts(),
            }
        ],
        "volumes": _volumes(config),
    }


def _mounts() -> list[dict[str, Any]]:
    # Drivers may mount their root on the node after this pod starts (HostToContainer).
    of_node = [
        {"name": name, "mountPath": path, "readOnly": True, "mountPropagation": "HostToContainer"}
        for name, path in _HOST_PATHS.items()
    ]
    return [
        *of_node,
        {"name": "config", "mountPath": _CONFIG, "readOnly": True},
        {"name": "locks", "mountPath": "/tmp"},
    ]


def _volumes(config: str) -> list[dict[str, Any]]:
    of_node = [
        {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in _HOST_PATHS.items()
    ]
    return [
        *of_node,
        {"name": "config", "configMap": {"name": config}},
        {"name": "locks", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]


class _NodeProblemDetector(Operator[NodeProblemDetectorSettings]):
    name = NAME
    title = "node-problem-detector"
    summary = "Reports problems of GPUs and InfiniBand as conditions of nodes."
    has_chart = False
    namespace = NODE_TOOLS_NAMESPACE
    settings = NodeProblemDetectorSettings
    component = NodeProblemDetector
    follows = (MONITORING, "network-operator")
    needs: Mapping[Capability, str] = {"GPUs": "queries the GPU driver"}
    is_for_gpu_pools = True  # AKS never installs the driver there (`gpuProfile.driver` None)


OPERATOR = _NodeProblemDetector()
