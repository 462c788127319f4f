from __future__ import annotations

from k8s.objects import Object
from tests.support.world import Stack, gpu_nodes

NAMESPACE = "node-tools"


def pods(stack: Stack, tool: str) -> list[Object]:
    return stack.kube.list("v1", "Pod", NAMESPACE, labels=f"app.kubernetes.io/name={tool}")


def ready(stack: Stack, tool: str) -> bool:
    found = pods(stack, tool)
    states = [s.get("ready", False) for pod in found for s in pod.get("status", {}).get("containerStatuses", [])]
    return len(states) == len(gpu_nodes(stack.kube)) and all(states)
