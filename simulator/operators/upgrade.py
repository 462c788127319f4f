"""Upgrades a driver node by node after its DaemonSet (OnDelete) has changed, like NVIDIA's operators.

Source of states and order: NVIDIA/k8s-operator-libs, pkg/upgrade, in gpu-operator v26.7.0 (common_manager.go,
upgrade_inplace.go, pod_manager.go, drain_manager.go). Requests by annotation, safe load and timeouts are not simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s.objects import Object, has_ended, is_ready
from simulator.kube.client import ApiError, KubeClient
from simulator.operators._loop import label

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
REQUIRED, CORDON, WAIT_FOR_JOBS = "upgrade-required", "cordon-required", "wait-for-jobs-required"
POD_DELETION, DRAIN, POD_RESTART = "pod-deletion-required", "drain-required", "pod-restart-required"
VALIDATION, UNCORDON, DONE, FAILED = "validation-required", "uncordon-required", "upgrade-done", "upgrade-failed"
_IDLE = ("", DONE, REQUIRED)


@dataclass(frozen=True)
class Driver:
    """The driver to upgrade."""

    name: str
    prefix: str
    """The prefix of labels and annotations: `nvidia.com/<driver>-driver-upgrade`."""
    uses: Callable[[Object], bool] | None = None
    """Whether a pod uses the driver. Such pods are evicted even without a drain."""
    validator: str = ""
    """A label selector of pods. They must be ready before the node is uncordoned."""
    same: Callable[[Object, Object], bool] = lambda running, wanted: False
    """Returns whether two pod specs install the same driver. If so, the driver's pod restarts without evicting jobs."""


@dataclass(frozen=True)
class Round:
    """The cluster's state. By node: the driver's pod (`pods`), and its newer pod template, if any (`templates`)."""

    policy: Mapping[str, Any]
    pods: Mapping[str, Object]
    templates: Mapping[str, Object]

    def rules(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.policy.get(name) or {}
        return found


@dataclass
class Upgrader:
    """Moves each node to its next state. States are node labels, so they survive restarts."""

    driver: Driver
    kube: KubeClient
    log: Callable[[str], None]
    _reported: set[str] = field(default_factory=set)

    def step(
        self, policy: Mapping[str, Any], daemonsets: Sequence[Object], pods: Sequence[Object], nodes: Sequence[Object]
    ) -> None:
        """Runs a round for the driver's `pods`. If `policy` (upgradePolicy) has no autoUpgrade, removes the states."""
        if not policy.get("autoUpgrade"):
            for node in nodes:
                if label(node, self._label) is not None:
                    self._patch(node, labels={self._label: None})
            return
        by_node = {pod["spec"].get("nodeName", ""): pod for pod in pods}
        newer = {name: found for name, pod in by_node.items() if (found := newer_template(pod, daemonsets))}
        now = Round(policy, by_node, newer)
        managed = [node for node in nodes if label(node, self._label) or node["metadata"]["name"] in by_node]
        free = self._free(policy, managed)
        for node in managed:
            if node["metadata"]["name"] not in by_node:
                continue  # the driver's pod is being re-created
            state = label(node, self._label) or ""
            if state == REQUIRED:
                free -= self._begin(node, now, free)
            else:
                self._handlers()[state](node, now)

    # -- states --------------------------------------------------------------------------------------------------------

    def _handlers(self) -> Mapping[str, Callable[[Object, Round], None]]:
        return {
            "": self._look,
            DONE: self._look,
            CORDON: self._cordon,
            WAIT_FOR_JOBS: self._wait_for_jobs,
            POD_DELETION: self._delete_users,
            DRAIN: self._drain,
            POD_RESTART: self._restart,
            VALIDATION: self._validate,
            UNCORDON: self._uncordon,
            FAILED: self._look_again,
        }

    def _look(self, node: Object, now: Round) -> None:
        if node["metadata"]["name"] in now.templates:
            was = {self._was_cordoned: "true"} if node["spec"].get("unschedulable") else {}
            self._set(node, REQUIRED, None, **was)
        elif label(node, self._label) is None:
            self._set(node, DONE)

    def _begin(self, node: Object, now: Round, free: int) -> bool:
        """Returns whether the upgrade started. If `free` is 0, only a cordoned node starts."""
        if free <= 0 and not node["spec"].get("unschedulable"):
            return False
        name = node["metadata"]["name"]
        if name in now.templates and self.driver.same(now.pods[name]["spec"], now.templates[name]["spec"]):
            self._set(node, POD_RESTART, unschedulable=True)
        else:
            self._set(node, CORDON)
        return True

    def _cordon(self, node: Object, _: Round) -> None:
        self._set(node, WAIT_FOR_JOBS, unschedulable=True)

    def _wait_for_jobs(self, node: Object, now: Round) -> None:
        selector = now.rules("waitForCompletion").get("podSelector")
        if not selector:
            self._set(node, POD_DELETION if self.driver.uses else DRAIN)
        elif running := [pod for pod in self._pods(node, selector) if not has_ended(pod)]:
            self._report(node, f"waits for {running[0]['metadata']['name']}")
        else:
            self._set(node, POD_DELETION)

    def _delete_users(self, node: Object, now: Round) -> None:
        if not (uses := self.driver.uses):
            self._set(node, DRAIN)
        elif not (users := [pod for pod in self._pods(node) if uses(pod) and not has_ended(pod)]):
            self._set(node, POD_RESTART)
        elif not self._evict(node, users, now.rules("podDeletion")):
            self._set(node, DRAIN if now.rules("drain").get("enable") else FAILED)

    def _drain(self, node: Object, now: Round) -> None:
        rules = now.rules("drain")
        skip = f"{self.driver.prefix}-drain.skip!=true"
        pods = self._pods(node, ",".join(filter(None, [rules.get("podSelector"), skip]))) if rules.get("enable") else []
        remaining = [pod for pod in pods if not _of_daemon_set(pod) and not has_ended(pod)]
        if not remaining:
            self._set(node, POD_RESTART)
        elif not self._evict(node, remaining, rules):
            self._set(node, FAILED)

    def _restart(self, node: Object, now: Round) -> None:
        name = node["metadata"]["name"]
        metadata = now.pods[name]["metadata"]
        if name not in now.templates:
            if is_ready(now.pods[name]):
                self._set(node, VALIDATION if self.driver.validator else UNCORDON)
        elif not metadata.get("deletionTimestamp"):
            self._report(node, f"restarts {metadata['name']}")
            self.kube.delete("v1", "Pod", metadata["name"], metadata["namespace"])

    def _validate(self, node: Object, _: Round) -> None:
        validators = self._pods(node, self.driver.validator)
        if validators and all(is_ready(pod) for pod in validators):
            self._set(node, UNCORDON)

    def _uncordon(self, node: Object, _: Round) -> None:
        leave = self._was_cordoned in node["metadata"].get("annotations", {})
        self._set(node, DONE, None if leave else False, **{self._was_cordoned: None})

    def _look_again(self, node: Object, now: Round) -> None:
        """Continues if a user has restarted the driver's pod after the failure."""
        name = node["metadata"]["name"]
        if name not in now.templates and is_ready(now.pods[name]):
            self._set(node, UNCORDON)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return f"{self.driver.prefix}-state"

    @property
    def _was_cordoned(self) -> str:
        return f"{self.driver.prefix}.node-initial-state.unschedulable"

    def _free(self, policy: Mapping[str, Any], managed: Sequence[Object]) -> int:
        """Returns how many nodes may start (GetUpgradesAvailable)."""
        states = [label(node, self._label) or "" for node in managed]
        most = policy.get("maxParallelUpgrades", 1)
        free = states.count(REQUIRED) if most == 0 else most - sum(state not in _IDLE for state in states)
        limit = _amount(policy.get("maxUnavailable"), len(managed))
        unavailable = sum(bool(node["spec"].get("unschedulable")) for node in managed) + states.count(CORDON)
        if unavailable >= limit:
            return 0
        return min(free, limit - unavailable) if limit < len(managed) else min(free, limit)

    def _pods(self, node: Object, selector: str = "") -> list[Object]:
        return self.kube.list("v1", "Pod", labels=selector, fields=f"spec.nodeName={node['metadata']['name']}")

    def _evict(self, node: Object, pods: Sequence[Object], rules: Mapping[str, Any]) -> bool:
        """Evicts all pods. If any pod must not be evicted, evicts no pod and returns False."""
        for pod in pods:
            if reason := obstacle(pod, rules):
                self._report(node, f"cannot go on: pod {pod['metadata']['name']} {reason}")
                return False
        for pod in pods:
            metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
            try:
                self.kube.raw("POST", path, json=eviction)
            except ApiError as error:
                if not error.not_found and error.reason != "TooManyRequests":  # disruption budget: retries later
                    raise
        return True

    def _set(self, node: Object, state: str, unschedulable: bool | None = None, **annotations: str | None) -> None:
        self.log(f"{self.driver.name} upgrade of node {node['metadata']['name']}: {state}")
        self._patch(node, unschedulable, labels={self._label: state}, annotations=annotations)

    def _patch(self, node: Object, unschedulable: bool | None = None, **metadata: Object) -> None:
        spec = {} if unschedulable is None else {"spec": {"unschedulable": True if unschedulable else None}}
        self.kube.patch("v1", "Node", node["metadata"]["name"], None, {"metadata": metadata, **spec})

    def _report(self, node: Object, what: str) -> None:
        line = f"{self.driver.name} upgrade of node {node['metadata']['name']} {what}"
        if line not in self._reported:
            self._reported.add(line)
            self.log(line)


def newer_template(pod: Object, daemonsets: Sequence[Object]) -> Object | None:
    owner = next((ref for ref in pod["metadata"].get("ownerReferences", []) if ref["kind"] == "DaemonSet"), None)
    daemonset = next((ds for ds in daemonsets if owner and ds["metadata"]["uid"] == owner["uid"]), None)
    if daemonset is None:
        return None
    current: str = daemonset["metadata"]["annotations"][TEMPLATE_GENERATION]
    template: Object = daemonset["spec"]["template"]
    return None if label(pod, "pod-template-generation") == current else template


def obstacle(pod: Object, rules: Mapping[str, Any]) -> str | None:
    """Returns why the pod must not be evicted (kubectl drain's rules), or None."""
    if not pod["metadata"].get("ownerReferences") and not rules.get("force"):
        return "declares no controller and force is false"
    if any("emptyDir" in volume for volume in pod["spec"].get("volumes", [])) and not rules.get("deleteEmptyDir"):
        return "uses an emptyDir and deleteEmptyDir is false"
    return None


def _of_daemon_set(pod: Object) -> bool:
    return any(reference["kind"] == "DaemonSet" for reference in pod["metadata"].get("ownerReferences", []))


def _amount(most: Any, of: int) -> int:
    if most is None:
        return of
    text = str(most)
    return math.ceil(of * int(text[:-1]) / 100) if text.endswith("%") else int(text)
