"""Why a node does not offer GPUs or HCAs: which part of NVIDIA's two operators is not up there, and why.

Labels are those of network-operator 26.4 (manifests/state-*/) and gpu-operator 26.7 (assets/state-*/). A device plugin
runs once the driver does, and with GPUDirect RDMA the GPU driver installs once OFED is there: the first part in this
order that is not ready is the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from diagnosis.cluster import (
    CLUSTER_POLICY,
    DAEMON_SET,
    NIC_POLICY,
    POD,
    Cluster,
    Kind,
    Object,
    condition,
    is_ready,
    labelled,
    owners_of,
)
from diagnosis.finding import Finding, Obstacle, listed, one_line
from diagnosis.nodes import GPU, allocatable, untolerated, words_of
from diagnosis.pods import Waiting, waiting

_GENERATION = "deprecated.daemonset.template.generation"
_POD_GENERATION = "pod-template-generation"
"""Annotation of a DaemonSet and label of its pods: those of another number are of an older template."""


@dataclass(frozen=True)
class Part:
    """One DaemonSet, or one for each kind of host, of an operator."""

    name: str
    policy: Kind
    labels: Mapping[str, str]
    """Of its pods."""
    installs: bool = False
    """Whether it is a driver: not every node has one, and to be up takes it minutes."""


OFED = Part("DOCA OFED", NIC_POLICY, {"nvidia.com/ofed-driver": ""}, installs=True)
_GPU_PARTS = (
    OFED,
    Part("the GPU driver", CLUSTER_POLICY, {"app.kubernetes.io/component": "nvidia-driver"}, installs=True),
    Part("the container toolkit", CLUSTER_POLICY, {"app": "nvidia-container-toolkit-daemonset"}),
    Part("the GPU device plugin", CLUSTER_POLICY, {"app": "nvidia-device-plugin-daemonset"}),
)
_RDMA_PARTS = (
    OFED,
    Part("the SR-IOV device plugin", NIC_POLICY, {"app": "sriovdp"}),
    Part("the RDMA shared device plugin", NIC_POLICY, {"app": "rdma-shared-dp"}),
)


def not_offered(cluster: Cluster, node: Object, resource: str, wanted: int) -> Obstacle:
    """Why the node offers fewer devices than a pod wants."""
    name = node["metadata"]["name"]
    parts = _GPU_PARTS if resource.startswith(GPU) else _RDMA_PARTS
    if not cluster.all(parts[-1].policy):
        kind = parts[-1].policy
        return Obstacle(f"{resource} is not offered, for there is no {kind.name}", f"kubectl get {kind.plural}")
    for part in parts:
        if found := _missing(cluster, node, part):
            return found
    offered = allocatable(node, resource)
    if offered:
        what = f"{offered} {resource} are offered and {wanted} wanted: a device has failed"
    else:
        what = f"{resource} is not offered, though its device plugin is ready"
    return Obstacle(what, f"kubectl describe node {name}")


def driver_upgrade(node: Object) -> str:
    """How far the upgrade of a driver is that an operator makes on the node; empty where it makes none.

    Labels and states are those of k8s-operator-libs (pkg/upgrade/consts.go).
    """
    labels = node["metadata"].get("labels", {})
    states = [labels.get(f"nvidia.com/{driver}-driver-upgrade-state", "") for driver in ("ofed", "gpu")]
    return ", ".join(state for state in states if state not in ("", "upgrade-done", "upgrade-required"))


def unready_policies(cluster: Cluster) -> list[Finding]:
    """What the operators say of policies that are not ready, and which of their pods are to blame."""
    return [
        finding
        for kind in (NIC_POLICY, CLUSTER_POLICY)
        for policy in cluster.all(kind)
        if policy.get("status", {}).get("state") != "ready"
        for finding in _unready(cluster, kind, policy)
    ]


def _unready(cluster: Cluster, kind: Kind, policy: Object) -> Iterator[Finding]:
    name = policy["metadata"]["name"]
    state = policy.get("status", {}).get("state") or "not looked at by its operator yet"
    said = f"{kind.name} {name} is {state}"
    told = _said_by_operator(policy)
    yield Finding(f"{said}: {told}" if told else said, f"kubectl describe {kind.plural} {name}")
    for daemon_set in _daemon_sets(cluster, kind):
        if daemon_set["spec"].get("updateStrategy", {}).get("type") == "OnDelete":
            yield from _old_pods(cluster, daemon_set)


def _said_by_operator(policy: Object) -> str:
    """The states that are not ready, as each operator tells of them."""
    status = policy.get("status", {})
    states = [entry for entry in status.get("appliedStates") or [] if entry["state"] not in ("ready", "ignore")]
    told = [": ".join(filter(None, [f"{entry['name']} {entry['state']}", entry.get("message")])) for entry in states]
    error = condition(policy, "Error")
    said = [status.get("reason", ""), *told, error.get("message", "") if error.get("status") == "True" else ""]
    return one_line(", ".join(filter(None, said)))


def _old_pods(cluster: Cluster, daemon_set: Object) -> Iterator[Finding]:
    generation = daemon_set["metadata"].get("annotations", {}).get(_GENERATION)
    old = [
        pod
        for pod in _pods_of(cluster, daemon_set)
        if pod["metadata"].get("labels", {}).get(_POD_GENERATION, generation) != generation
    ]
    if old:
        name, where = daemon_set["metadata"]["name"], listed([pod["spec"]["nodeName"] for pod in old], "node")
        why = f"DaemonSet {name} has an old pod on {where}, which it replaces only once that is deleted (OnDelete)"
        yield Finding(why, "roll these nodes, as docs/drivers.md shows; their devices serve meanwhile")


def _missing(cluster: Cluster, node: Object, part: Part) -> Obstacle | None:
    """What is wrong with a part on a node; None where it is up, or is not meant to be there."""
    daemon_sets = [ds for ds in _daemon_sets(cluster, part.policy) if labelled(ds["spec"]["template"], part.labels)]
    for daemon_set in daemon_sets:
        for pod in _pods_of(cluster, daemon_set):
            if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                return None if is_ready(pod) else _starting(part, pod)
    absent = [_absent(node, part, daemon_set) for daemon_set in daemon_sets]
    return next((found for found in absent if found), None)


def _starting(part: Part, pod: Object) -> Obstacle:
    metadata, held = pod["metadata"], waiting(pod)
    where = f"-n {metadata['namespace']} {metadata['name']}"
    if held and held.fails:
        look = f"kubectl describe pod {where}" if held.never_ran else f"kubectl logs {where} --previous"
        return Obstacle(f"{part.name} does not start ({one_line(held.told)})", look)
    doing = "is being installed" if part.installs else "is starting"
    return Obstacle(f"{part.name} {doing}{_stage(held)}", f"kubectl logs {where} --all-containers", _begun(pod))


def _stage(held: Waiting | None) -> str:
    return f" ({held.told})" if held and held.told else ""


def _absent(node: Object, part: Part, daemon_set: Object) -> Obstacle | None:
    """Why the DaemonSet has no pod on the node."""
    spec, labels = daemon_set["spec"]["template"]["spec"], node["metadata"].get("labels", {})
    lacking = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if labels.get(key) != value}
    name, namespace = daemon_set["metadata"]["name"], daemon_set["metadata"]["namespace"]
    if lacking and part.installs:  # it has another driver, or no such hardware: what comes after says more
        return None
    if lacking:
        key, value = next(iter(lacking.items()))
        what = f"{part.name} does not run: the label {key}={value} is missing, which NFD and the operators set"
        return Obstacle(what, f"kubectl get pods -n {namespace} -o wide")
    if taints := untolerated(node, spec):
        what = f"{part.name} does not run: DaemonSet {name} has no toleration for taint {words_of(taints[0])}"
        return Obstacle(what, f"kubectl describe daemonset -n {namespace} {name}")
    return Obstacle(f"{part.name} has no pod yet", f"kubectl describe daemonset -n {namespace} {name}")


def _daemon_sets(cluster: Cluster, kind: Kind) -> list[Object]:
    policies = {policy["metadata"]["uid"] for policy in cluster.all(kind)}
    return [ds for ds in cluster.all(DAEMON_SET) if owners_of(ds) & policies]


def _pods_of(cluster: Cluster, daemon_set: Object) -> list[Object]:
    metadata = daemon_set["metadata"]
    return cluster.owned(POD, metadata["namespace"], [metadata["uid"]])


def _begun(pod: Object) -> str:
    begun: str = pod.get("status", {}).get("startTime") or pod["metadata"].get("creationTimestamp", "")
    return begun
