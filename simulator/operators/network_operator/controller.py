"""Reconciles the NicClusterPolicy like the network operator: DaemonSets, the wait label, status."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k8s.objects import Object
from simulator.kubelet.programs import Holder, PodContext
from simulator.operators._loop import Operator, is_rolled_out, label, labelled, owner_reference, set_labels
from simulator.operators._metrics import Family, exposition
from simulator.operators.network_operator import daemonsets as build
from simulator.operators.upgrade import Driver, Upgrader
from simulator.world.hardware import NodeHardware

API = "mellanox.com/v1alpha1"
KIND = "NicClusterPolicy"
NAME = "nic-cluster-policy"
METRICS_PORT = 8080
# Fields of the policy with the operator's states that are not simulated.
NOT_SIMULATED = {
    "secondaryNetwork": "state-multus-cni",
    "ibKubernetes": "state-ib-kubernetes",
    "nvIpam": "state-nv-ipam-cni",
    "nicFeatureDiscovery": "state-nic-feature-discovery",
    "docaTelemetryService": "state-doca-telemetry-service",
    "nicConfigurationOperator": "state-nic-configuration-operator",
    "spectrumXOperator": "state-spectrum-x-operator",
}

OFED = Driver("OFED", "nvidia.com/ofed-driver-upgrade")


@dataclass(frozen=True)
class World:
    """The objects that the controller reads in each `step`."""

    nodes: Sequence[Object]
    daemonsets: Sequence[Object]
    ofed_pods: Sequence[Object]


def run(ctx: PodContext, stop: threading.Event) -> None:
    Controller(ctx).run(stop)


def text(_: NodeHardware, __: Sequence[Holder]) -> str:
    """Returns one metric of controller-runtime (v0.22.5). All other metrics depend on past events."""
    found = Family(
        "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller"
    )
    found.samples.append(({"controller": "nicclusterpolicy"}, 1))
    return exposition([found])


class Controller(Operator):
    """The operator. Each `step` is one reconciliation."""

    def __init__(self, ctx: PodContext) -> None:
        super().__init__(ctx, "network-operator", (API, KIND))
        self._upgrader = Upgrader(OFED, ctx.kube, ctx.log)

    def step(self) -> None:
        policies = self._kube.list(API, KIND)
        for other in policies:
            if other["metadata"]["name"] != NAME:
                name = other["metadata"]["name"]
                reason = f"Unsupported {KIND} instance {name}. Only instance with name {NAME} is supported"
                self._write_status(other, {"state": "ignore", "reason": reason})
        policy = next((item for item in policies if item["metadata"]["name"] == NAME), None)
        world = World(
            self._kube.list("v1", "Node"),
            self._kube.list("apps/v1", "DaemonSet", self._namespace, labels=f"{build.OWNER_LABEL}={KIND}"),
            self._kube.list("v1", "Pod", self._namespace, labels=build.OFED_POD_LABEL),
        )
        if policy and not policy["metadata"].get("deletionTimestamp"):
            self._write_status(policy, self._sync(policy, world))
            upgrade = policy.get("spec", {}).get("ofedDriver", {}).get("upgradePolicy", {})
            self._upgrader.step(upgrade, world.daemonsets, world.ofed_pods, world.nodes)
        self._label_nodes(policy, world)

    # -- states --------------------------------------------------------------------------------------------------------

    def _sync(self, policy: Object, world: World) -> Object:
        spec = policy.get("spec", {})
        results = [
            self._state(policy, world, "ofedDriver", "state-OFED", lambda: self._ofed(spec, world)),
            self._state(
                policy,
                world,
                "sriovDevicePlugin",
                "state-SRIOV-device-plugin",
                lambda: build.sriov_device_plugin(spec, self._namespace),
            ),
            self._state(
                policy,
                world,
                "rdmaSharedDevicePlugin",
                "state-RDMA-device-plugin",
                lambda: build.rdma_shared_device_plugin(spec, self._namespace),
            ),
        ]
        for field, state in NOT_SIMULATED.items():
            if field in spec:
                results.append({"name": state, "state": "error", "message": f"spec.{field} is not simulated"})
            else:
                results.append({"name": state, "state": "ignore"})
        done = all(result["state"] in ("ready", "ignore") for result in results)
        return {"state": "ready" if done else "notReady", "reason": "", "appliedStates": results}

    def _ofed(self, spec: Mapping[str, Any], world: World) -> list[Object]:
        groups = build.host_groups(world.nodes, spec.get("tolerations", []))
        return build.ofed(spec, groups, self._namespace)

    def _state(
        self, policy: Object, world: World, field: str, state: str, objects: Callable[[], list[Object]]
    ) -> Object:
        live = {ds["metadata"]["name"]: ds for ds in labelled(world.daemonsets, build.STATE_LABEL, state)}
        if field not in policy.get("spec", {}):
            self._delete(live)
            return {"name": state, "state": "notReady" if live else "ignore"}
        try:
            wanted = objects()
        except build.PolicyError as error:
            return {"name": state, "state": "error", "message": f"failed to create k8s objects from manifest: {error}"}
        for obj in wanted:
            obj["metadata"]["ownerReferences"] = [owner_reference(policy, controller=True)]
            self._applier.apply(obj, lost=obj["kind"] == "DaemonSet" and obj["metadata"]["name"] not in live)
        names = {obj["metadata"]["name"] for obj in wanted if obj["kind"] == "DaemonSet"}
        stale = {name: ds for name, ds in live.items() if name not in names}
        self._delete(stale)
        # If no node matches, the state is not ready.
        ready = names and not stale and all(name in live and _is_rolled_out_on_a_node(live[name]) for name in names)
        return {"name": state, "state": "ready" if ready else "notReady"}

    def _delete(self, daemonsets: Mapping[str, Object]) -> None:
        for name in daemonsets:
            self._ctx.log(f"deleting DaemonSet {name}: the policy does not request it")
            self._kube.delete("apps/v1", "DaemonSet", name, self._namespace)

    # -- nodes and status ----------------------------------------------------------------------------------------------

    def _label_nodes(self, policy: Object | None, world: World) -> None:
        has_driver = policy is not None and "ofedDriver" in policy.get("spec", {})
        pods = {pod["spec"]["nodeName"]: pod for pod in world.ofed_pods if pod["spec"].get("nodeName")}
        for node in world.nodes:
            pod = pods.get(node["metadata"]["name"])
            if pod is not None:
                waiting = "false" if has_driver and _driver_ready(pod) else "true"
                set_labels(self._kube, node, {build.WAIT_LABEL: waiting})
            elif not has_driver:
                has_nic = label(node, build.NIC_LABEL) == "true"
                set_labels(self._kube, node, {build.WAIT_LABEL: "false" if has_nic else None})


def _is_rolled_out_on_a_node(daemonset: Object) -> bool:
    return is_rolled_out(daemonset) and daemonset["status"].get("desiredNumberScheduled", 0) > 0


def _driver_ready(pod: Object) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return any(status["name"] == build.OFED_CONTAINER and status["ready"] for status in statuses)
