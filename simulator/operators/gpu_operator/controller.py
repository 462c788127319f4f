"""Reconciles the ClusterPolicy like the GPU operator: node labels, DaemonSets in order, status."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from k8s.objects import Object
from simulator.kube import events
from simulator.kubelet.programs import PodContext
from simulator.operators._loop import Operator, is_rolled_out, owner_reference, set_labels
from simulator.operators.crds import CRD_API
from simulator.operators.gpu_operator import dcgm, rbac
from simulator.operators.gpu_operator import nodes as gpu_nodes
from simulator.operators.gpu_operator.daemonsets import OPERANDS, Operand, daemonset
from simulator.operators.gpu_operator.gates import DRIVER_APP
from simulator.operators.network_operator.daemonsets import OS_LABEL, OS_VERSION_LABEL
from simulator.operators.upgrade import Driver, Upgrader

API = "nvidia.com/v1"
KIND = "ClusterPolicy"
SERVICE_MONITORS = "servicemonitors.monitoring.coreos.com"
RUNTIME_CLASSES = ("nvidia", "nvidia-cdi", "nvidia-legacy")
UPGRADE_ANNOTATION = "nvidia.com/gpu-driver-upgrade-enabled"


def uses_gpu(pod: Object) -> bool:
    limits = [container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]]
    return any(name.startswith("nvidia.com/gpu") for resources in limits for name in resources)


def installs_same(running: Object, wanted: Object) -> bool:
    """Returns whether two pods install the same driver (DRIVER_CONFIG_DIGEST, internal/predicates/restart_only.go)."""
    return all(
        [container.get(key) for container in running["containers"]]
        == [container.get(key) for container in wanted["containers"]]
        for key in ("name", "image", "command", "args", "env")
    )


GPU_DRIVER = Driver(
    "GPU driver", "nvidia.com/gpu-driver-upgrade", uses_gpu, "app=nvidia-operator-validator", installs_same
)


def run(ctx: PodContext, stop: threading.Event) -> None:
    Controller(ctx).run(stop)


class Controller(Operator):
    """The operator. Each `step` is one reconciliation."""

    def __init__(self, ctx: PodContext) -> None:
        super().__init__(ctx, "gpu-operator", (API, KIND))
        self._upgrader = Upgrader(GPU_DRIVER, ctx.kube, ctx.log)
        self._conflicts: set[str] = set()

    def step(self) -> None:
        policies = self._kube.list(API, KIND)
        alive = [policy for policy in policies if not policy["metadata"].get("deletionTimestamp")]
        alive.sort(key=lambda policy: (policy["metadata"]["creationTimestamp"], policy["metadata"]["name"]))
        for other in alive[1:]:
            self._write_status(other, {"state": "ignored", "namespace": self._namespace})
        if not alive:
            return
        nodes = self._kube.list("v1", "Node")
        for node in nodes:
            self._label(node, alive[0])
        self._sync(alive[0], nodes)

    def _label(self, node: Object, policy: Object) -> None:
        labels = node["metadata"].get("labels", {})
        if set_labels(self._kube, node, gpu_nodes.wanted_labels(labels)):
            self._ctx.log(f"labelled node {node['metadata']['name']}")
        if labels.get(gpu_nodes.DEPLOY_DRIVER) == gpu_nodes.DRIVER_PREINSTALLED:
            self._tell_conflict(node, policy)
        upgrade = policy["spec"]["driver"].get("upgradePolicy", {}).get("autoUpgrade")
        annotations = node["metadata"].get("annotations", {})
        if upgrade and gpu_nodes.has_gpu(labels) and annotations.get(UPGRADE_ANNOTATION) != "true":
            body = {"metadata": {"annotations": {UPGRADE_ANNOTATION: "true"}}}
            self._kube.patch("v1", "Node", node["metadata"]["name"], None, body)

    def _tell_conflict(self, node: Object, policy: Object) -> None:
        """Warns about a node whose image has a driver already (docs/simulator.md, Cause and effect)."""
        name = node["metadata"]["name"]
        if name in self._conflicts or not policy["spec"]["driver"].get("enabled"):
            return
        message = (
            "The node image brings its own GPU driver (gpuProfile.driver Install) and the ClusterPolicy's is on: the "
            "operator's, and nvidia-peermem with it, is disabled on this node. Make the pool with driver None."
        )
        told_of = {"apiVersion": "v1", "kind": "Node", **node}
        events.record(self._kube, told_of, "Warning", "DriverPreInstalled", message, {"component": "gpu-operator"})
        self._conflicts.add(name)
        self._ctx.log(f"node {name}: {message}")

    def _sync(self, policy: Object, nodes: Sequence[Object]) -> None:
        spec = policy["spec"]
        labels = [node["metadata"].get("labels", {}) for node in nodes]
        gpu = [found for found in labels if found.get(gpu_nodes.GPU_PRESENT) == "true"]
        live = {ds["metadata"]["name"]: ds for ds in self._kube.list("apps/v1", "DaemonSet", self._namespace)}
        self._pre_requisites(policy)
        try:
            os_tag = _os_tag(gpu[0]) if gpu else ""
        except LookupError as error:
            self._report(policy, "ReconcileFailed", str(error), ready=False)
            return
        if gpu:
            pods = self._kube.list("v1", "Pod", self._namespace, labels=f"app={DRIVER_APP}")
            self._upgrader.step(spec["driver"].get("upgradePolicy", {}), list(live.values()), pods, nodes)
        waiting = []
        for operand in OPERANDS:
            if not operand.enabled(spec):
                self._delete(operand, live)
            elif gpu and not self._deploy(operand, policy, live, os_tag):
                waiting.append(operand.state)
        self._conclude(policy, waiting, labels, has_gpu=bool(gpu))

    def _conclude(
        self, policy: Object, waiting: Sequence[str], labels: Sequence[Mapping[str, str]], *, has_gpu: bool
    ) -> None:
        if waiting:
            message = f"ClusterPolicy is not ready, states not ready: [{' '.join(waiting)}]"
            self._report(policy, "OperandNotReady", message, ready=False)
        elif not any(name.startswith(gpu_nodes.NFD_PREFIX) for found in labels for name in found):
            self._report(policy, "NFDLabelsMissing", "No NFD labels found", ready=True)
        elif not has_gpu:
            message = "No GPU node found, watching for new nodes to join the cluster."
            self._report(policy, "NoGPUNodes", message, ready=True)
        else:
            message = "ClusterPolicy is ready as all resources have been successfully reconciled"
            self._report(policy, "Reconciled", message, ready=True)

    # -- objects -------------------------------------------------------------------------------------------------------

    def _pre_requisites(self, policy: Object) -> None:
        """Creates missing runtime classes. The operator has no permission to patch them."""
        existing = {item["metadata"]["name"] for item in self._kube.list("node.k8s.io/v1", "RuntimeClass")}
        for name in RUNTIME_CLASSES:
            if name not in existing:
                metadata = {"name": name, "ownerReferences": [owner_reference(policy, controller=True)]}
                body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": name, "metadata": metadata}
                self._kube.create(body)

    def _deploy(self, operand: Operand, policy: Object, live: Mapping[str, Object], os_tag: str) -> bool:
        wanted = daemonset(operand, policy["spec"], self._namespace, os_tag)
        for obj in (*rbac.objects(operand.service_account, self._namespace), wanted):
            obj["metadata"]["ownerReferences"] = [owner_reference(policy, controller=True)]
            lost = obj is wanted and operand.daemonset not in live
            if self._applier.apply(obj, lost=lost) and obj is wanted:
                self._ctx.log(f"applied DaemonSet {operand.daemonset}")
        if operand.daemonset == dcgm.NAME and self._is_monitored(policy["spec"]):
            for obj in dcgm.found_by(policy["spec"], self._namespace):
                obj["metadata"]["ownerReferences"] = [owner_reference(policy, controller=True)]
                self._create_or_update(obj)
        found = live.get(operand.daemonset)
        return found is not None and is_rolled_out(found)  # True if no node matches

    def _create_or_update(self, wanted: Object) -> None:
        """Creates an object, or replaces it if its spec differs. The operator has no permission to patch it."""
        metadata = wanted["metadata"]
        found = self._kube.find(wanted["apiVersion"], wanted["kind"], metadata["name"], self._namespace)
        if found is None:
            self._kube.create(wanted)
        elif any(found["spec"].get(key) != value for key, value in wanted["spec"].items()):
            spec = {**found["spec"], **wanted["spec"]}
            version = found["metadata"]["resourceVersion"]
            self._kube.replace({**wanted, "spec": spec, "metadata": {**metadata, "resourceVersion": version}})

    def _is_monitored(self, spec: Mapping[str, Any]) -> bool:
        wanted = spec["dcgmExporter"].get("serviceMonitor", {}).get("enabled", False)
        return bool(wanted) and self._kube.find(CRD_API, "CustomResourceDefinition", SERVICE_MONITORS) is not None

    def _delete(self, operand: Operand, live: Mapping[str, Object]) -> None:
        if operand.daemonset in live:
            self._kube.delete("apps/v1", "DaemonSet", operand.daemonset, self._namespace)
            self._ctx.log(f"deleted DaemonSet {operand.daemonset}: spec.{operand.field}.enabled is false")

    # -- status --------------------------------------------------------------------------------------------------------

    def _report(self, policy: Object, reason: str, message: str, *, ready: bool) -> None:
        old = policy.get("status", {}).get("conditions", [])
        if ready:
            wanted = [("Ready", "True", reason, message), ("Error", "False", "Ready", "")]
        else:
            wanted = [("Ready", "False", "Error", ""), ("Error", "True", reason, message)]
        conditions = [_condition(old, *condition) for condition in wanted]
        state = "ready" if ready else "notReady"
        self._write_status(policy, {"state": state, "namespace": self._namespace, "conditions": conditions})


def _os_tag(labels: Mapping[str, str]) -> str:
    for name in (OS_LABEL, OS_VERSION_LABEL):
        if name not in labels:
            raise LookupError(f"unable to retrieve the OS of the GPU nodes from label {name}")
    return labels[OS_LABEL] + labels[OS_VERSION_LABEL]


def _condition(old: Sequence[Object], kind: str, status: str, reason: str, message: str) -> Object:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in old:
        if condition["type"] == kind and condition["status"] == status:
            at = condition["lastTransitionTime"]
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
