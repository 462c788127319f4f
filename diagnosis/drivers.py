"""Why a node does not offer GPUs or HCAs: which part of NVIDIA's two operators is not up there, and why.

Labels are those of network-operator 26.4 (manifests/state-*/) and gpu-operator 26.7 (assets/state-*/). A device plugin
runs once the driver does, and with GPUDirect RDMA the GPU driver installs once OFED is there: the first part in this
order that is not ready is the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from config.facts.scheduling import GPU_RESOURCE
from diagnosis.cluster import (
    CLUSTER_POLICY,
    DAEMON_SET,
    NIC_POLICY,
    NODE,
    POD,
    Cluster,
    Kind,
    Object,
    condition,
    is_ready,
    labelled,
    owners_of,
)
from diagnosis.finding import Finding, Obstacle, one_line, together
from diagnosis.nodes import allocatable, untolerated, words_of
from diagnosis.pods import Waiting, waiting
from k8s.quantities import count

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
    parts = _GPU_PARTS if resource.startswith(GPU_RESOURCE) else _RDMA_PARTS
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


def broken_nodes(cluster: Cluster) -> list[Finding]:
    """Nodes that do not report, and those that offer fewer devices than they have: a device plugin found a bad one."""
    return together((node["metadata"]["name"], obstacle) for node in cluster.all(NODE) for obstacle in _broken(node))


def _broken(node: Object) -> Iterator[Obstacle]:
    status, look = node.get("status", {}), f"kubectl describe node {node['metadata']['name']}"
    ready = condition(node, "Ready")
    if ready and ready.get("status") != "True":
        yield Obstacle(one_line(f"not ready: {ready.get('message', '')}"), look, ready.get("lastTransitionTime", ""))
        return
    for resource, there in status.get("capacity", {}).items():
        if "/" in resource and (offered := allocatable(node, resource)) < count(there):
            yield Obstacle(f"{offered} of {there} {resource} are offered: a device has failed", look)


def _missing(cluster: Cluster, node: Object, part: Part) -> Obstacle | None:
    """What is wrong with a part on a node; None where it is up, or is not meant to be there."""
    found = [ds for ds in daemon_sets(cluster, part.policy) if labelled(ds["spec"]["template"], part.labels)]
    for daemon_set in found:
        for pod in pods_of(cluster, daemon_set):
            if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                return None if is_ready(pod) else _starting(part, daemon_set, pod)
    absent = [_absent(node, part, daemon_set) for daemon_set in found]
    return next((obstacle for obstacle in absent if obstacle), None)


def is_old(daemon_set: Object, pod: Object) -> bool:
    """Whether the pod is of an older template, and stays so until somebody deletes it."""
    generation = daemon_set["metadata"].get("annotations", {}).get(_GENERATION)
    on_delete = daemon_set["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
    return on_delete and bool(pod["metadata"].get("labels", {}).get(_POD_GENERATION, generation) != generation)


def _starting(part: Part, daemon_set: Object, pod: Object) -> Obstacle:
    metadata, held = pod["metadata"], waiting(pod)
    where = f"-n {metadata['namespace']} {metadata['name']}"
    if is_old(daemon_set, pod):
        return Obstacle(f"{part.name} is not up, and its pod is old", f"kubectl delete pod {where}")
    if held and held.fails:
        return Obstacle(f"{part.name} does not start ({one_line(held.told)})", held.look(pod))
    doing = "is being installed" if part.installs else "is starting"
    return Obstacle(f"{part.name} {doing}{_stage(held)}", f"kubectl logs {where} --all-containers", begun(pod))


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


def daemon_sets(cluster: Cluster, kind: Kind) -> list[Object]:
    """Those of an operator's policies."""
    policies = {policy["metadata"]["uid"] for policy in cluster.all(kind)}
    return [ds for ds in cluster.all(DAEMON_SET) if owners_of(ds) & policies]


def pods_of(cluster: Cluster, daemon_set: Object) -> list[Object]:
    metadata = daemon_set["metadata"]
    return cluster.owned(POD, metadata["namespace"], [metadata["uid"]])


def begun(pod: Object) -> str:
    """Since when it is on its node."""
    found: str = pod.get("status", {}).get("startTime") or pod["metadata"].get("creationTimestamp", "")
    return found
