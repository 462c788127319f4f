"""Rolls the OFED driver when the policy's DaemonSet changed: node by node, draining first where the policy says so.

The real upgrade controller also waits for jobs by label and validates; that is left out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator.kube.client import ApiError, KubeClient
from simulator.operators._loop import is_ready, label

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
UPGRADE_LABEL = "nvidia.com/ofed-driver-upgrade-state"
SKIP_DRAIN_LABEL = "nvidia.com/ofed-driver-upgrade-drain.skip"

Object = dict[str, Any]


class Upgrader:
    """`step` does the next thing for each node; its state is in the nodes' labels, so that a restart goes on."""

    def __init__(self, kube: KubeClient, log: Callable[[str], None]) -> None:
        self._kube, self._log = kube, log

    def step(
        self,
        driver: Mapping[str, Any] | None,
        daemonsets: Sequence[Object],
        pods: Sequence[Object],
        nodes: Sequence[Object],
    ) -> None:
        policy = (driver or {}).get("upgradePolicy", {})
        if not policy.get("autoUpgrade"):
            return
        outdated = {pod["spec"].get("nodeName"): pod for pod in pods if is_outdated(pod, daemonsets)}
        fresh = {pod["spec"].get("nodeName") for pod in pods if is_ready(pod) and not is_outdated(pod, daemonsets)}
        busy = [node for node in nodes if label(node, UPGRADE_LABEL) not in (None, "upgrade-done")]
        for node in busy:
            if node["metadata"]["name"] in fresh:
                self._finish(node)
        limit = policy.get("maxParallelUpgrades", 1) or len(nodes)
        waiting = [node for node in nodes if node["metadata"]["name"] in outdated and node not in busy]
        for node in waiting[: max(0, limit - len(busy))]:
            self._begin(node)
        for node in busy:
            if pod := outdated.get(node["metadata"]["name"]):
                self._advance(node, pod, policy.get("drain", {}))

    def _begin(self, node: Object) -> None:
        name = node["metadata"]["name"]
        self._log(f"upgrading OFED on node {name}: cordon")
        body = {"metadata": {"labels": {UPGRADE_LABEL: "cordon-required"}}, "spec": {"unschedulable": True}}
        self._kube.patch("v1", "Node", name, None, body)

    def _advance(self, node: Object, pod: Object, drain: Mapping[str, Any]) -> None:
        name = node["metadata"]["name"]
        remaining = self._workload_pods(name, drain) if drain.get("enable") else []
        for victim in remaining:
            self._evict(victim)
        if not remaining:
            self._log(f"upgrading OFED on node {name}: restarting the driver pod")
            self._kube.delete("v1", "Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _finish(self, node: Object) -> None:
        name = node["metadata"]["name"]
        self._log(f"upgrading OFED on node {name}: done")
        body = {"metadata": {"labels": {UPGRADE_LABEL: "upgrade-done"}}, "spec": {"unschedulable": None}}
        self._kube.patch("v1", "Node", name, None, body)

    def _workload_pods(self, node: str, drain: Mapping[str, Any]) -> list[Object]:
        selector = drain.get("podSelector", "")
        pods = self._kube.list("v1", "Pod", labels=selector, fields=f"spec.nodeName={node}")
        return [pod for pod in pods if not _stays(pod)]

    def _evict(self, pod: Object) -> None:
        metadata = pod["metadata"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        try:
            self._kube.raw("POST", path, json=eviction)
        except ApiError as error:
            if not error.not_found and error.reason != "TooManyRequests":  # a disruption budget: try again later
                raise


def is_outdated(pod: Object, daemonsets: Sequence[Object]) -> bool:
    """Whether the pod was made from an older template than its DaemonSet has now."""
    owner = next((ref for ref in pod["metadata"].get("ownerReferences", []) if ref["kind"] == "DaemonSet"), None)
    daemonset = next((ds for ds in daemonsets if owner and ds["metadata"]["uid"] == owner["uid"]), None)
    if daemonset is None:
        return False
    current: str = daemonset["metadata"]["annotations"][TEMPLATE_GENERATION]
    return label(pod, "pod-template-generation") != current


def _stays(pod: Object) -> bool:
    owners = {ref["kind"] for ref in pod["metadata"].get("ownerReferences", [])}
    done = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return done or "DaemonSet" in owners or label(pod, SKIP_DRAIN_LABEL) == "true"
