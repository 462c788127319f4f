"""Reports cordoned nodes: who cordoned them, and until when.

Labels, annotations and upgrade states are those of NVIDIA/k8s-operator-libs (pkg/upgrade/consts.go), which rolls out
the drivers of both NVIDIA operators. A node's managedFields name other clients that cordoned it. AKS's actions are
events of the node (Azure/AKS#2692; learn.microsoft.com/azure/aks: node-auto-repair, node-problem-detector).
"""

from __future__ import annotations

import re

from diagnosis.cluster import EVENT, Cluster, event_time, labelled
from diagnosis.drivers import broken
from diagnosis.finding import Obstacle, joined, listed, one_line
from diagnosis.node_states import is_of_person, leaving, manager, removal, unhealthy
from diagnosis.nodes import format_taint, is_of_program
from k8s.objects import Object, is_ready
from k8s.resources import device_requests

_DRIVERS = {"ofed": "DOCA OFED", "gpu": "the GPU driver"}
_DRIVER_PODS = {"ofed": {"nvidia.com/ofed-driver": ""}, "gpu": {"app.kubernetes.io/component": "nvidia-driver"}}
_NOT_AT_WORK = ("", "upgrade-done", "upgrade-required")
_FAILED = "upgrade-failed"
_JOBS, _DELETION, _DRAIN = "wait-for-jobs-required", "pod-deletion-required", "drain-required"
_RESTART, _VALIDATION = "pod-restart-required", "validation-required"
_TAINT = "node.kubernetes.io/unschedulable"
_BY_AKS = re.compile(
    "Drain|Surge|Update|Node(Reboot|Reimage|Redeploy)(Start|End|Error)"
    "|(Preempt|Redeploy|Reboot|Terminate|Freeze)Scheduled"
)


def cordoned(cluster: Cluster, node: Object) -> list[Obstacle]:
    return [cordon(cluster, node)] if node["spec"].get("unschedulable") and not removal(node) else []


def cordon(cluster: Cluster, node: Object) -> Obstacle:
    labels = node["metadata"].get("labels", {})
    for driver, called in _DRIVERS.items():
        state = labels.get(f"nvidia.com/{driver}-driver-upgrade-state", "")
        if state not in _NOT_AT_WORK:
            return _upgrade(cluster, node, driver, f"cordoned by NVIDIA's operators, which upgrade {called} ({state})")
    if state := leaving(node):
        return state.obstacle(node)
    who = manager(node, "f:unschedulable")
    what = f"cordoned by {who}: it takes no new pods" if who else "cordoned: it takes no new pods"
    taints = [each for each in node["spec"].get("taints", []) if each["key"] != _TAINT and not is_of_program(each)]
    what += f", and has {listed([format_taint(each) for each in taints], 'taint')}" if taints else ""
    look = f"kubectl describe node {node['metadata']['name']}    # "
    if doing := _done_by_aks(cluster, node):
        what, fix = f"{what}; {doing}", f"{look}do not uncordon it: wait until AKS has finished"
    elif other_problems(cluster, node):
        fix = f"{look}uncordon it only after its other problems are fixed"
    elif who and not is_of_person(who):  # if a user uncordons the node, a controller evicts its new pods
        fix = f"{look}wait for {who}"
    elif taints:
        fix = f"{look}do not uncordon it, unless pools.<key>.taints lists the taint: a controller is removing the node"
    else:
        ask = f": ask the user of {who}" if who and not who.startswith("kubectl") else ""
        fix = f"kubectl uncordon {{nodes}}    # first find out why it is cordoned{ask}"
    return Obstacle(what, fix, _since(node))


def _done_by_aks(cluster: Cluster, node: Object) -> str:
    name = node["metadata"]["name"]
    about = {"kind": "Node", "name": name}.items()  # without uid: kubelets write the node's name there
    events = [each for each in cluster.all(EVENT) if about <= each["involvedObject"].items()]
    last = max((each for each in events if _BY_AKS.fullmatch(each.get("reason") or "")), key=event_time, default=None)
    action = one_line(joined(last["reason"], last.get("message"))) if last else ""
    is_over = re.match("Node[A-Za-z]+End|Update(?!.*fail)", action)
    return f"AKS: {action}" if action and not is_over else ""


def other_problems(cluster: Cluster, node: Object) -> list[Obstacle]:
    state = leaving(node)
    return [*([state.obstacle(node)] if state else []), *broken(cluster, node), *unhealthy(node)]


def _upgrade(cluster: Cluster, node: Object, driver: str, what: str) -> Obstacle:
    name, labels = node["metadata"]["name"], node["metadata"]["labels"]
    state = labels[f"nvidia.com/{driver}-driver-upgrade-state"]
    if state == _FAILED:
        why = f"{what}: a pod there cannot be evicted"
        return Obstacle(why, "kubectl get pdb -A    # then roll out the driver by hand (docs/drivers.md)")
    pods = _waited_for(cluster, node, driver, state)
    names = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]
    until = "be ready" if state in (_RESTART, _VALIDATION) else "end"
    more = f"; they wait for {listed(names, 'pod')} to {until}" if names else ""
    return Obstacle(what + more, f"kubectl get pods -A -o wide --field-selector spec.nodeName={name}", _since(node))


def _waited_for(cluster: Cluster, node: Object, driver: str, state: str) -> list[Object]:
    """Returns the pods that must end or become ready before the next upgrade state, first those with devices."""
    there = sorted(cluster.on_node(node), key=lambda pod: not device_requests(pod))
    if state in (_JOBS, _DRAIN, _DELETION):
        return [pod for pod in there if not _of_daemon_set(pod) and (state != _DELETION or device_requests(pod))]
    if state in (_RESTART, _VALIDATION):
        return [pod for pod in there if labelled(pod, _DRIVER_PODS[driver]) and not is_ready(pod)]
    return []


def _of_daemon_set(pod: Object) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))


def _since(node: Object) -> str:
    taints = node["spec"].get("taints", [])
    return next((taint.get("timeAdded", "") for taint in taints if taint["key"] == _TAINT), "")
