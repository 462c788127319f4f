"""Finds why a node does not offer GPUs or HCAs: which part of NVIDIA's two operators is not ready there, and why.

Labels are those of network-operator 26.4 (manifests/state-*/) and gpu-operator 26.7 (assets/state-*/). A device plugin
starts after its driver. With GPUDirect RDMA, the GPU driver starts after OFED. The cause is the first part in this
order that is not ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from config.data.scheduling import GPU_RESOURCE
from diagnosis.cluster import (
    CLUSTER_POLICY,
    DAEMON_SET,
    NIC_POLICY,
    POD,
    RESOURCE_SLICE,
    Cluster,
    Kind,
    labelled,
    owners_of,
)
from diagnosis.devices import configured, expected, is_gpu
from diagnosis.finding import Obstacle, is_past, joined, later, one_line
from diagnosis.lost import REPAIR
from diagnosis.node_states import CHECK_AGAIN
from diagnosis.nodes import format_taint, is_new, joining
from diagnosis.pods import waiting
from k8s.objects import Object, condition, has_ended, is_ready
from k8s.quantities import count
from k8s.resources import allocatable, device_requests
from k8s.scheduling import untolerated

_GENERATION = "deprecated.daemonset.template.generation"
_POD_GENERATION = "pod-template-generation"
"""An annotation of a DaemonSet, and a label of its pods. If their numbers differ, the pod has an older template."""
_SET_UP_MINUTES = 30
"""The longest setup of a node: 12 and 8 minutes for the two drivers (docs/drivers.md), 10 to pull their images."""
_DEPLOYS = ("nvidia.com/gpu.deploy.device-plugin", "nvidia.com/gpu.deploy.operands")
"""Labels that exclude a node from the GPU operator if they are set and not "true" (gpu-operator, state_manager.go)."""

_NO_PLUGIN = Obstacle(
    "no ClusterPolicy of the GPU operator installs the device plugin",
    "kubectl get clusterpolicies    # pulumi up installs the operator and its policy",
)
_MODE = "kubernetes.azure.com/mode"
_DRA = "gpu.nvidia.com"
"""Driver of ResourceSlices (NVIDIA/k8s-dra-driver-gpu): pods claim GPUs, and the node does not offer them."""


@dataclass(frozen=True)
class Part:
    """A part of an operator: one DaemonSet, or one for each kind of host."""

    name: str
    policy: Kind
    labels: Mapping[str, str]
    installs: bool = False
    """Whether the part installs a driver. Some nodes do not need it, and the installation takes minutes."""


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
    look = f"kubectl describe node {node['metadata']['name']}"
    if offered := allocatable(node, resource):
        has, capacity = expected(cluster, node, resource), count(node["status"].get("capacity", {}).get(resource))
        failed = "a device has failed" if max(has, capacity) > offered else ""
        why = failed or ("its VM size does not have more" if has else "the node does not have more")
        return Obstacle(f"{offered} {resource} are offered, and {wanted} requested: {why}", look)
    others = [name for name in node["status"].get("allocatable", {}) if is_gpu(name) and allocatable(node, name)]
    if is_gpu(resource) and others:
        return Obstacle(f"{resource} is not offered: the GPUs are offered as {' and '.join(others)}", look)
    parts = _parts(resource)
    if not parts:
        return Obstacle(f"{resource} is not offered: no device plugin of the node has it", look)
    kind = parts[-1].policy
    if not cluster.all(kind):
        return Obstacle(f"{resource} is not offered: the cluster has no {kind.name}", f"kubectl get {kind.plural}")
    absent = Obstacle(f"{resource} is not offered, though its device plugin is ready", look)
    return next(filter(None, (_missing(cluster, node, part) for part in parts)), absent)


def _parts(resource: str) -> tuple[Part, ...]:
    if is_gpu(resource):
        return _GPU_PARTS
    return _RDMA_PARTS if resource.startswith(("nvidia.com/", "rdma/")) else ()


def broken(cluster: Cluster, node: Object) -> Iterator[Obstacle]:
    """Yields an obstacle if the node is not ready or offers fewer devices than its VM size has.

    After a reboot, the node's capacity lacks a lost device, too.
    """
    look, ready = f"kubectl describe node {node['metadata']['name']}", condition(node, "Ready")
    if ready and ready.get("status") != "True":
        lost = one_line(f"not ready: {ready.get('message', '')}")
        since = ready.get("lastTransitionTime", "")
        yield joining(node) if is_new(node) else Obstacle(lost, f"{look}    # {REPAIR}", since)
        return
    capacity = node["status"].get("capacity", {})
    absent = [] if any(map(is_gpu, capacity)) else [GPU_RESOURCE]  # a device plugin that finds no device registers none
    absent += (
        [] if any(count(capacity[name]) for name in capacity if _parts(name) == _RDMA_PARTS) else configured(cluster)
    )
    for resource in dict.fromkeys([*capacity, *absent]):
        offered, total = allocatable(node, resource), count(capacity.get(resource, 0))
        most = max(total, expected(cluster, node, resource))
        serves = _plugin_is_ready(cluster, node, resource)
        if "/" not in resource or offered >= most or not (total or serves or _is_late(cluster, node, resource)):
            continue  # all are offered, or the setup is still running
        if offered:
            yield Obstacle(
                f"{offered} of {most} {resource} are offered: a device has failed", f"{look}    # {CHECK_AGAIN}"
            )
        elif total and not (is_gpu(resource) and serves):
            why = "its device plugin does not run, or offers other names now"
            gone = "the kubelet removes old names when it restarts"
            yield Obstacle(f"none of {total} {resource} is offered: {why}", f"{look}    # {gone}")
        elif serves:
            yield Obstacle(f"0 of {most} {resource} are offered, though the device plugin is ready", look)
        else:
            causes = (_missing(cluster, node, part) for part in _parts(resource))
            off = _NO_PLUGIN if is_gpu(resource) and not _has_plugin(cluster) else None
            cause = off or next(filter(None, causes), Obstacle("", look))
            what = f"0 of {most} {resource} are offered, though the node is older than {_SET_UP_MINUTES} minutes"
            yield Obstacle(joined(what, cause.what), cause.fix, cause.since)


def _is_late(cluster: Cluster, node: Object, resource: str) -> bool:
    """Returns whether the operators should have set up the resource by now.

    All NVIDIA GPUs should be offered, but HCAs only if a NicClusterPolicy exists. A node without a creation time counts
    as old if the operators are installed.
    """
    metadata = node["metadata"]
    policies = cluster.all(_parts(resource)[-1].policy) if _parts(resource) else []
    made, wanted = metadata.get("creationTimestamp"), bool(policies)
    if is_gpu(resource):
        name, slices = metadata["name"], cluster.all(RESOURCE_SLICE) if made and not _has_plugin(cluster) else []
        claimed = any((each["spec"].get("driver"), each["spec"].get("nodeName")) == (_DRA, name) for each in slices)
        renamed = any(is_gpu(each) and allocatable(node, each) for each in node["status"].get("allocatable", {}))
        wanted = (_has_plugin(cluster) or bool(made)) and not claimed and not renamed
        labels = metadata.get("labels", {})
        wanted = wanted and labels.get(_MODE) != "system" and all(labels.get(key, "true") == "true" for key in _DEPLOYS)
    return wanted and (not made or is_past(later(made, _SET_UP_MINUTES * 60)))


def _has_plugin(cluster: Cluster) -> bool:
    return any(each["spec"].get("devicePlugin", {}).get("enabled", True) for each in cluster.all(CLUSTER_POLICY))


def _plugin_is_ready(cluster: Cluster, node: Object, resource: str) -> bool:
    plugins = [part.labels for part in _parts(resource) if not part.installs and "toolkit" not in part.name]
    there = [pod for pod in cluster.on_node(node) if is_ready(pod)]
    return any(labelled(pod, labels) for pod in there for labels in plugins)


def _missing(cluster: Cluster, node: Object, part: Part) -> Obstacle | None:
    found = [ds for ds in daemon_sets(cluster, part.policy) if labelled(ds["spec"]["template"], part.labels)]
    for daemon_set in found:
        for pod in pods_of(cluster, daemon_set):
            if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                return None if is_ready(pod) else _starting(cluster, part, daemon_set, pod)
    absent = [_absent(node, part, daemon_set) for daemon_set in found]
    return next((obstacle for obstacle in absent if obstacle), None)


def is_old(daemon_set: Object, pod: Object) -> bool:
    """Returns whether the pod has an older template, and is replaced only after a user deletes it."""
    generation = daemon_set["metadata"].get("annotations", {}).get(_GENERATION)
    on_delete = daemon_set["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
    return on_delete and bool(pod["metadata"].get("labels", {}).get(_POD_GENERATION, generation) != generation)


def in_use(cluster: Cluster, pods: Iterable[Object]) -> str:
    """Returns a hint to wait until pods with devices have ended, because the deletion of driver pods takes their
    devices. Empty if the nodes of `pods` have no such pods.
    """
    nodes = {pod["spec"].get("nodeName") for pod in pods}
    busy = any(
        pod["spec"].get("nodeName") in nodes and device_requests(pod) for pod in cluster.all(POD) if not has_ended(pod)
    )
    return "    # after the pods with devices on that node have ended" if busy else ""


def _starting(cluster: Cluster, part: Part, daemon_set: Object, pod: Object) -> Obstacle:
    metadata, held = pod["metadata"], waiting(pod)
    where = f"-n {metadata['namespace']} {metadata['name']}"
    if is_old(daemon_set, pod):
        return Obstacle(
            f"{part.name} is not ready, and its pod is old", f"kubectl delete pod {where}{in_use(cluster, [pod])}"
        )
    if held and held.fails:
        return Obstacle(f"{part.name} does not start ({one_line(held.description)})", held.look(pod))
    doing = "is being installed" if part.installs else "is starting"
    stage = f" ({held.description})" if held and held.description else ""
    return Obstacle(f"{part.name} {doing}{stage}", f"kubectl logs {where} --all-containers", begun(pod))


def _absent(node: Object, part: Part, daemon_set: Object) -> Obstacle | None:
    spec, labels = daemon_set["spec"]["template"]["spec"], node["metadata"].get("labels", {})
    lacking = {key: value for key, value in spec.get("nodeSelector", {}).items() if labels.get(key) != value}
    name, namespace = daemon_set["metadata"]["name"], daemon_set["metadata"]["namespace"]
    if lacking and part.installs:  # the node has another driver or no such hardware: see the next part
        return None
    if lacking and is_new(node):
        what = f"{part.name} does not run yet: the operators have not labelled the new node"
        return Obstacle(what, f"kubectl get pods -n {namespace} -o wide    # wait a minute or two", passing=True)
    if lacking:
        key, value = next(iter(lacking.items()))
        what = f"{part.name} does not run: NFD and the operators did not set the label {key}={value}"
        return Obstacle(what, f"kubectl get pods -n {namespace} -o wide")
    if taints := untolerated(node, spec):
        what = f"{part.name} does not run: DaemonSet {name} has no toleration for taint {format_taint(taints[0])}"
        return Obstacle(what, f"kubectl describe daemonset -n {namespace} {name}")
    return Obstacle(f"{part.name} has no pod yet", f"kubectl describe daemonset -n {namespace} {name}")


def daemon_sets(cluster: Cluster, kind: Kind) -> list[Object]:
    policies = {policy["metadata"]["uid"] for policy in cluster.all(kind)}
    return [ds for ds in cluster.all(DAEMON_SET) if owners_of(ds) & policies]


def pods_of(cluster: Cluster, daemon_set: Object) -> list[Object]:
    metadata = daemon_set["metadata"]
    return cluster.owned(POD, metadata["namespace"], [metadata["uid"]])


def begun(pod: Object) -> str:
    found: str = pod["status"].get("startTime") or pod["metadata"].get("creationTimestamp", "")
    return found
