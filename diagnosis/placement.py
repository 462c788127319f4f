"""Finds why pods have no node: the reasons of schedulers and autoscaler, and the obstacles on each node.

Also reports the pods' claims that have no volume, with the provisioner's message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from config.data.near import hint, near
from config.data.scheduling import AGENT_POOL_LABEL, HEALTH_TAINT, SPOT_LABEL
from diagnosis import schedulers
from diagnosis.autoscaler import may_grow, scaling
from diagnosis.cluster import CLAIM, NODE, STORAGE_CLASS, Cluster, labelled, where
from diagnosis.cordons import cordon, other_problems
from diagnosis.drivers import not_offered
from diagnosis.finding import Finding, Obstacle, grouped, joined, merge_obstacles, one_line
from diagnosis.messages import cause, most_specific
from diagnosis.node_states import failed_check, is_of_person, leaving, manager, of_taints, writers
from diagnosis.nodes import describe_nodes, format_taint, is_new, is_of_program, joining, required_labels, too_small
from diagnosis.policies import unready_policies
from k8s.objects import Object, condition
from k8s.resources import allocatable, device_requests
from k8s.scheduling import selects, untolerated

_WHY = ("ExternalProvisioning", "FailedBinding", "VolumeMismatch", "ClaimMisbound", "ClaimLost", "ProvisioningFailed")
"""Reasons of events of claims (pkg/controller/volume/events). If a claim has several, the last in this order is
reported.
"""

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
"""Message of Kubernetes' scheduler (pkg/scheduler/framework/plugins/volumebinding)."""
_NO_CLASS = re.compile(r'storageclass\.storage\.k8s\.io "([^"]+)" not found')
_JOB_LABELS = ("volcano.sh/job-name", "batch.kubernetes.io/job-name")
_SET_ASIDE = re.compile(
    r"(?i)maintenance|decom|retire|xid|drain|repair|faulty|fail|broken|unhealthy|defect|error|cordon"
)
"""Words in keys of taints that users and controllers set on single nodes, not on pools."""
_SYSTEM = {"kubernetes.azure.com/mode": "system"}
_JOINING = ("node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable")
"""Taints of every new node."""


def missing_claims(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    namespace = pods[0]["metadata"]["namespace"]
    messages = [condition(pod, "PodScheduled").get("message", "") for pod in pods]
    for name in sorted({name for message in messages for name in _NO_CLAIM.findall(message)}):
        claims = [claim["metadata"]["name"] for claim in cluster.all(CLAIM, namespace)]
        if name not in claims:
            fix = f"kubectl get pvc -n {namespace}    # create claim {name}, or name another in the pod's spec.volumes"
            yield Finding(f"claim {name} does not exist{hint(near(name, claims))}", fix)


def without_volume(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    mounted = {name for pod in pods for name in _claims(pod)}
    for claim in cluster.all(CLAIM, pods[0]["metadata"]["namespace"]) if mounted else ():
        metadata = claim["metadata"]
        if metadata["name"] not in mounted or claim["status"].get("phase") == "Bound":
            continue
        events = grouped((event["reason"], event) for event in cluster.events(claim) if event["reason"] in _WHY)
        if events:
            event = most_specific(events[max(events, key=_WHY.index)])
            why = f"claim {metadata['name']} has no volume: {cause(event['message'])}"
            if found := _NO_CLASS.search(why):
                classes = [each["metadata"]["name"] for each in cluster.allowed(STORAGE_CLASS)]
                again = (
                    "kubectl get storageclass    # a claim keeps its class: delete the claim and create another claim"
                )
                yield Finding(f"{one_line(why)}{hint(near(found[1], classes))}", again)
            else:
                yield Finding(one_line(why), f"kubectl describe pvc {where(claim)}")


def _claims(pod: Object) -> Iterator[str]:
    sources = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes", []))
    return (source["claimName"] for source in sources if source)


def not_placed(cluster: Cluster, pods: Sequence[Object]) -> list[Finding]:
    """Returns why pods have no node. If Volcano has not admitted a gang, its `pods` are made from templates."""
    held = [pod for pod in pods if schedulers.gates(pod)]
    pods = [pod for pod in pods if not schedulers.gates(pod)]
    gated = list(schedulers.gated(cluster, held))
    if not pods:
        return gated
    if off := schedulers.off(cluster, pods[0]):
        return [*gated, off]
    there = any(_candidates(cluster, pod) for pod in pods)
    scaled = scaling(cluster, pods, there=there)
    findings = [finding for alike in _alike(pods) for finding in _behind(cluster, alike)] if cluster.is_complete else []
    policies = unready_policies(cluster) if any(_lack_devices(cluster, pod) for pod in pods) else []
    if scaled and not there:  # the autoscaler's reason explains the scheduler's reason
        return [*gated, *scaled, *policies, *without_volume(cluster, pods)]
    claims = list(missing_claims(cluster, pods))
    reasons = claims or schedulers.explain(cluster, pods, known=bool(findings))
    return [*gated, *reasons, *findings, *scaled, *policies, *without_volume(cluster, pods)]


def _alike(pods: Iterable[Object]) -> list[list[Object]]:
    fields = ("nodeSelector", "affinity", "tolerations")
    keys = ((str([*map(pod["spec"].get, fields), device_requests(pod)]), pod) for pod in pods)
    return list(grouped(keys).values())


def _behind(cluster: Cluster, pods: Sequence[Object]) -> list[Finding]:
    pod, wanted = pods[0], device_requests(pods[0])
    nodes = _candidates(cluster, pod)
    if not nodes:
        spot = any(each.get("key") == SPOT_LABEL for each in pod["spec"].get("tolerations", []))
        evicted = "    # Azure may have evicted Spot nodes; without autoscale: pulumi up --refresh" if spot else ""
        shows = f" -L {labels}" if (labels := ",".join(required_labels(pod))) else ""
        missing = joined("no node", describe_nodes(pod), "exists yet", by=" ")
        return [Finding(missing, f"kubectl get nodes{shows}{evicted}")]
    found = {node["metadata"]["name"]: _obstacles(cluster, node, pod, wanted) for node in nodes}
    obstacles = [(name, obstacle) for name, each in found.items() for obstacle in each]
    needed = len(pods) if wanted else 1
    if len(nodes) - len({name for name, _ in obstacles}) >= needed:
        return []
    return [*merge_obstacles(obstacles), *_too_few(cluster, nodes, pods, wanted)]


def _lack_devices(cluster: Cluster, pod: Object) -> bool:
    wanted = device_requests(pod).items()
    return any(allocatable(node, name) < count for node in _candidates(cluster, pod) for name, count in wanted)


def _candidates(cluster: Cluster, pod: Object) -> list[Object]:
    nodes = [node for node in cluster.all(NODE) if selects(pod, node)]
    return [node for node in nodes if not device_requests(pod) or not labelled(node, _SYSTEM)]


def _obstacles(cluster: Cluster, node: Object, pod: Object, wanted: dict[str, int]) -> Iterable[Obstacle]:
    first = _obstacle(cluster, node, pod, wanted)
    others = other_problems(cluster, node) if first and node["spec"].get("unschedulable") else []
    return dict.fromkeys([first, *others]) if first else ()


def _obstacle(cluster: Cluster, node: Object, pod: Object, wanted: dict[str, int]) -> Obstacle | None:
    if small := too_small(node, pod):
        name, asked, has = small
        lower = f"lower the requests of each pod to less than {has} {name}, or add a pool with a larger VM size"
        fix = f"kubectl describe node {node['metadata']['name']}    # {lower}"
        return Obstacle(f"each pod requests {asked} {name}, and only {has} are allocatable", fix)
    if taints := untolerated(node, pod["spec"]):
        return _tainted(cluster, node, taints)
    for resource, count in wanted.items():
        if allocatable(node, resource) < count:
            return not_offered(cluster, node, resource, count)
    for resource, count in wanted.items():
        holders = [other for other in cluster.on_node(node) if device_requests(other).get(resource)]
        free = allocatable(node, resource) - sum(device_requests(other)[resource] for other in holders)
        if free < count:
            users = " and ".join(sorted({_workload(other) for other in holders}))
            return Obstacle(f"{resource} is taken by {users}")
    return None


def _tainted(cluster: Cluster, node: Object, taints: Sequence[Object]) -> Obstacle:
    own = [each for each in taints if each["key"] == HEALTH_TAINT or each["key"].startswith("node.kubernetes.io/")]
    cordoned = node["spec"].get("unschedulable", False)
    set_aside = [each for each in taints if cordoned and each not in own and _is_of_node(cluster, node, each)]
    name, taint = node["metadata"]["name"], [*set_aside, *own, *taints][0]
    if state := of_taints(taints):
        return state.obstacle(node)
    if taint["key"] == "node.kubernetes.io/unschedulable":
        return cordon(cluster, node)
    if taint["key"].startswith("node.kubernetes.io/"):
        if state := leaving(node):
            return state.obstacle(node)
        if taint["key"] in _JOINING and is_new(node):
            return joining(node)
        return Obstacle(f"not ready for pods: taint {format_taint(taint)}", f"kubectl describe node {name}")
    if taint["key"] == HEALTH_TAINT:
        return failed_check(node)
    if _is_of_node(cluster, node, taint):
        what = f"taint {format_taint(taint)}, which its pool does not set,{' and a cordon' if cordoned else ''}"
        who = manager(node, "f:taints") or "the controller or user that set it"
        return Obstacle(
            what, f"kubectl describe node {name}    # ask {who}; neither tolerate the taint nor uncordon the node"
        )
    what = f"no toleration for taint {format_taint(taint)}"
    add = f"add {_toleration(taint)} to the pod's spec.tolerations; for a workload of the stack, "
    add += "list all tolerations in podOverrides.spec.tolerations"
    if is_of_program(taint):
        ask = "; if the pool does not set the taint, find out who set it" if len(_of_pool(cluster, node)) == 1 else ""
        return Obstacle(what, f"kubectl describe node {name}    # {add}{ask}")
    pool, who = node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL, "<pool>"), manager(node, "f:taints")
    look = f"az aks nodepool show -g <group> --cluster-name <cluster> -n {pool} --query nodeTaints"
    removed = "if pools.<key>.taints of the stack does not list the taint, a controller is removing the node"
    fix = f"{look}    # {removed}; if it does, {add}"
    return Obstacle(f"{what}{f', last written by {who}' if who else ''}", fix)


def _toleration(taint: Object) -> str:
    value = f'operator: Equal, value: "{taint["value"]}"' if taint.get("value") else "operator: Exists"
    return f"{{key: {taint['key']}, {value}, effect: {taint['effect']}}}"


def _is_of_node(cluster: Cluster, node: Object, taint: Object) -> bool:
    if _SET_ASIDE.search(taint["key"]) or any(map(is_of_person, writers(node, "f:taints"))):
        return True
    keys = [{each["key"] for each in other["spec"].get("taints", [])} for other in _of_pool(cluster, node)]
    return any(taint["key"] not in there for there in keys)


def _of_pool(cluster: Cluster, node: Object) -> list[Object]:
    pool = node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL)
    return [each for each in cluster.all(NODE) if pool and labelled(each, {AGENT_POOL_LABEL: pool})]


def _too_few(
    cluster: Cluster, nodes: Sequence[Object], pods: Sequence[Object], wanted: dict[str, int]
) -> list[Finding]:
    if not wanted or _lack_devices(cluster, pods[0]):
        return []
    fitting = sum(min(allocatable(node, resource) // count for resource, count in wanted.items()) for node in nodes)
    if fitting >= len(pods):
        return []
    each = ", ".join(f"{count} {resource}" for resource, count in wanted.items())
    why = f"{len(pods)} pods request {each} each, and only {fitting} fit on the nodes that they may use"
    return [Finding(why, lasts=not may_grow(cluster, pods[0], len(nodes)))]


def _workload(pod: Object) -> str:
    metadata: dict[str, Any] = pod["metadata"]
    labels = metadata.get("labels", {})
    name = next((labels[label] for label in _JOB_LABELS if label in labels), metadata["name"])
    return f"{metadata['namespace']}/{name}"
