"""Rolls a driver whose DaemonSet changed (strategy OnDelete), node by node, clearing the node first if told to.

The NVIDIA operators share this controller in life too. Left out: waiting for jobs by label, validation afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.status import has_ended
from simulator.operators._loop import is_ready, label

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
DONE = "upgrade-done"

Object = dict[str, Any]


@dataclass(frozen=True)
class Driver:
    """What is upgraded. `uses` tells the pods that must leave even without a drain."""

    name: str
    state_label: str
    skip_label: str
    uses: Callable[[Object], bool] = lambda pod: False


class Upgrader:
    """`step` does the next thing for each node; its state is in the nodes' labels, so that a restart goes on."""

    def __init__(self, driver: Driver, kube: KubeClient, log: Callable[[str], None]) -> None:
        self._driver, self._kube, self._log = driver, kube, log
        self._told: set[str] = set()

    def step(
        self,
        policy: Mapping[str, Any],
        daemonsets: Sequence[Object],
        pods: Sequence[Object],
        nodes: Sequence[Object],
    ) -> None:
        """`policy` is the driver's upgradePolicy; nothing happens without its autoUpgrade."""
        if not policy.get("autoUpgrade"):
            return
        outdated = {pod["spec"].get("nodeName"): pod for pod in pods if is_outdated(pod, daemonsets)}
        fresh = {pod["spec"].get("nodeName") for pod in pods if is_ready(pod) and not is_outdated(pod, daemonsets)}
        busy = [node for node in nodes if label(node, self._driver.state_label) not in (None, DONE)]
        for node in busy:
            name = node["metadata"]["name"]
            if name in fresh:
                self._set(node, DONE, unschedulable=False)
            elif name in outdated:
                self._advance(name, outdated[name], policy)
        limit = policy.get("maxParallelUpgrades", 1) or len(nodes)
        waiting = [node for node in nodes if node["metadata"]["name"] in outdated and node not in busy]
        for node in waiting[: max(0, limit - len(busy))]:
            self._set(node, "cordon-required", unschedulable=True)

    def _set(self, node: Object, state: str, *, unschedulable: bool) -> None:
        name = node["metadata"]["name"]
        self._log(f"{self._driver.name} upgrade of node {name}: {state}")
        labels = {self._driver.state_label: state}
        body = {"metadata": {"labels": labels}, "spec": {"unschedulable": True if unschedulable else None}}
        self._kube.patch("v1", "Node", name, None, body)

    def _advance(self, node: str, driver_pod: Object, policy: Mapping[str, Any]) -> None:
        """Evicts what must go; once nothing is left, the driver's pod restarts with the new template."""
        drain, deletion = policy.get("drain", {}), policy.get("podDeletion", {})
        remaining = 0
        for pod in self._kube.list("v1", "Pod", fields=f"spec.nodeName={node}"):
            rules = drain if drain.get("enable") else deletion if self._driver.uses(pod) else None
            if rules is None or self._stays(pod):
                continue
            remaining += 1
            if reason := obstacle(pod, rules):
                self._tell(f"{self._driver.name} upgrade of node {node} waits: pod {pod['metadata']['name']} {reason}")
            else:
                self._evict(pod)
        if not remaining:
            self._tell(f"{self._driver.name} upgrade of node {node}: restarting {driver_pod['metadata']['name']}")
            metadata = driver_pod["metadata"]
            self._kube.delete("v1", "Pod", metadata["name"], metadata["namespace"])

    def _stays(self, pod: Object) -> bool:
        owners = {ref["kind"] for ref in pod["metadata"].get("ownerReferences", [])}
        done = has_ended(pod)
        return done or "DaemonSet" in owners or label(pod, self._driver.skip_label) == "true"

    def _evict(self, pod: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        metadata = {"name": name, "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        try:
            self._kube.raw("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", json=eviction)
        except ApiError as error:
            if not error.not_found and error.reason != "TooManyRequests":  # a disruption budget: try again later
                raise

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._log(line)


def is_outdated(pod: Object, daemonsets: Sequence[Object]) -> bool:
    """Whether the pod was made from an older template than its DaemonSet has now."""
    owner = next((ref for ref in pod["metadata"].get("ownerReferences", []) if ref["kind"] == "DaemonSet"), None)
    daemonset = next((ds for ds in daemonsets if owner and ds["metadata"]["uid"] == owner["uid"]), None)
    if daemonset is None:
        return False
    current: str = daemonset["metadata"]["annotations"][TEMPLATE_GENERATION]
    return label(pod, "pod-template-generation") != current


def obstacle(pod: Object, rules: Mapping[str, Any]) -> str | None:
    """Why the pod may not be evicted (kubectl drain's rules), None where it may."""
    if not pod["metadata"].get("ownerReferences") and not rules.get("force"):
        return "declares no controller and force is false"
    if any("emptyDir" in volume for volume in pod["spec"].get("volumes", [])) and not rules.get("deleteEmptyDir"):
        return "uses an emptyDir and deleteEmptyDir is false"
    return None
