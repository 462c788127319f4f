"""Reads from the cluster autoscaler whether it adds nodes for pending pods, or why not.

The events and their reasons are those of cluster-autoscaler 1.35 (processors/status/eventing_scale_up_processor.go,
core/scaleup/orchestrator/skippedreasons.go, clusterstate/clusterstate.go). The autoscaler writes its status to a
ConfigMap in kube-system (clusterstate/api/types.go). On AKS, a node group is a scale set, which has the pool's name in
its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from config.data.scheduling import (
    ACCELERATOR_LABEL,
    AGENT_POOL_LABEL,
    ALL_GPUS_COUNTED_SINCE,
    GPU_RESOURCE,
    POOL_LABEL,
)
from config.rules.pools import autoscale_fixed
from diagnosis.cluster import EVENT, NODE, Cluster, event_time
from diagnosis.finding import Finding, listed, one_line
from diagnosis.nodes import describe_nodes, required_pools
from k8s.objects import Object
from k8s.resources import allocatable
from k8s.scheduling import selects

_NAMESPACE, _STATUS = "kube-system", "cluster-autoscaler-status"
_ADDS, _REFUSES = "TriggeredScaleUp", "NotTriggerScaleUp"
_FAILED = ("FailedToScaleUpGroup", "ScaleUpTimedOut")
_GROWTH = re.compile(r"\{(?P<group>\S+) (?P<now>\d+)->(?P<then>\d+) \(max: (?P<most>\d+)\)\}")
_POOL = re.compile(r"^aks-([a-z0-9]+)-\d+-vmss$")
_BACKOFF, _MAX, _UNREADY = "in backoff after failed scale-up", "max node group size reached", "not ready for scale-up"
_LIMITS = re.compile(r"max total nodes in cluster reached|max cluster .*limit reached|exceeded quota|node count limit")
_UNFIT = re.compile(
    r"Insufficient |didn't match|untolerated taint|had taint|didn't satisfy|anti-affinity|free ports|Too many pods"
)
"""The scheduler's reasons why a pod does not fit on a new node of a pool."""
_LOOK = f"kubectl get configmap -n {_NAMESPACE} {_STATUS} -o yaml"
_RAISE = "pulumi config set --path 'pools.{key}.autoscale.max' <nodes>    # then pulumi up"


def scaling(cluster: Cluster, pods: Sequence[Object], *, there: bool) -> list[Finding]:
    """Returns the autoscaler's reports on pods without a node; empty if it reports nothing.

    `there` is whether the cluster has a node that the pods may use.
    """
    events = ((pod, [each for each in cluster.events(pod) if each["reason"] in (_ADDS, _REFUSES)]) for pod in pods)
    last = {of[-1]["reason"]: (pod, of[-1]) for pod, of in events if of}
    found = list(_refusal(cluster, *last[_REFUSES], there=there)) if _REFUSES in last else []
    found += _growth(cluster, last[_ADDS][1]) if _ADDS in last else []
    if pods and (cause := _stopped(cluster, pods[0])):
        return [cause, *(finding for finding in found if finding.passing)]
    return found if found or there or not pods else list(_on_its_way(cluster, pods[0]))


def may_grow(cluster: Cluster, pod: Object, nodes: int) -> bool:
    groups = _groups(cluster, pod)
    return (
        not groups
        or not required_pools(pod)
        or nodes < sum(each["health"].get("maxSize", nodes + 1) for each in groups.values())
    )


def may_add_pool(cluster: Cluster, pod: Object) -> bool:
    """Returns whether the autoscaler may add a node to an empty pool. Such a node may be larger than existing nodes."""
    names = [node["metadata"]["name"] for node in cluster.all(NODE)]
    return any(not any(name.startswith(group) for name in names) for group in _groups(cluster, pod) or ())


def _stopped(cluster: Cluster, pod: Object) -> Finding | None:
    """Returns a finding if a GPU node offers no GPUs and its pool does not autoscale.

    Autoscalers since 1.35 then add no nodes at all, without a report (kubernetes/autoscaler#10301).
    """
    groups = tuple(_status(cluster))
    newest = max(map(_version, cluster.all(NODE)), default=())
    if not groups or not _groups(cluster, pod) or newest < ALL_GPUS_COUNTED_SINCE:
        return None
    nodes = [node for node in cluster.all(NODE) if not node["metadata"]["name"].startswith(groups)]
    without = [node for node in nodes if _has_gpus(node) and not allocatable(node, GPU_RESOURCE)]
    if not without:
        return None
    labels = without[0]["metadata"].get("labels", {})
    pool, key = labels.get(AGENT_POOL_LABEL, "<pool>"), labels.get(POOL_LABEL, "<key>")
    size = sum(node["metadata"].get("labels", {}).get(AGENT_POOL_LABEL) == pool for node in nodes)
    names = listed([node["metadata"]["name"] for node in without], "node")
    why = f"the autoscaler adds no node to any pool while {names} of pool {pool}, which does not autoscale, lacks GPUs"
    fix = autoscale_fixed(("pools", key), size)
    return Finding(why, f"{fix}    # then run pulumi up; a cordon does not help")


def _has_gpus(node: Object) -> bool:
    return ACCELERATOR_LABEL in node["metadata"].get("labels", {})


def _version(node: Object) -> tuple[int, ...]:
    """Returns a node's kubelet version, which is never newer than the autoscaler; ALL_GPUS_COUNTED_SINCE if unknown."""
    found = re.match(r"v(\d+)\.(\d+)", node.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", ""))
    return tuple(map(int, found.groups())) if found else ALL_GPUS_COUNTED_SINCE


def _on_its_way(cluster: Cluster, pod: Object) -> Iterator[Finding]:
    """Yields a pause of the autoscaler, and growing pools: a pod that fits on their new nodes gets no event."""
    if _read(cluster).get("clusterWide", {}).get("health", {}).get("status") == "Unhealthy":
        yield Finding("the autoscaler pauses, since too many nodes of the cluster are not ready", "kubectl get nodes")
    for name, group in (_groups(cluster, pod) or {}).items() if required_pools(pod) else ():
        if group["scaleUp"].get("status") == "InProgress":
            target = group["health"].get("cloudProviderTarget", "more")
            yield Finding(f"the autoscaler grows {_called(name)} to {target} nodes", "kubectl get nodes", passing=True)


def _growth(cluster: Cluster, event: Object) -> Iterator[Finding]:
    """Yields the pools that grow or cannot grow. Omits pools that already have all new nodes."""
    message = event.get("message") or ""
    found = list(_GROWTH.finditer(message))
    if not found:
        yield Finding(one_line(f"the autoscaler adds nodes: {message}"), "kubectl get nodes", passing=True)
    for each in found:
        group, called = each["group"], _called(each["group"])
        there = sum(node["metadata"]["name"].startswith(group) for node in cluster.all(NODE))
        size = f"from {each['now']} to {each['then']} nodes (max {each['most']})"
        if why := _azure_error(cluster, [group], since=event_time(event)):
            yield Finding(one_line(f"the autoscaler cannot grow {called} {size}: {why}"), _LOOK)
        elif there < int(each["then"]):
            yield Finding(f"the autoscaler grows {called} {size}", "kubectl get nodes", passing=True)


def _refusal(cluster: Cluster, pod: Object, event: Object, *, there: bool) -> Iterator[Finding]:
    text = (event.get("message") or "").partition(":")[2].strip()
    groups = _groups(cluster, pod)
    if groups is None:
        return
    adds = f"the autoscaler adds no node {describe_nodes(pod)}".rstrip()
    error = _azure_error(cluster, list(groups))
    if _BACKOFF in text and (error or _MAX not in text):
        why = f"{adds} for now, and tries again within 30 minutes: {error or 'a scale-up has failed'}"
        yield Finding(one_line(why), _LOOK, lasts="quota" in error.lower())
    elif _MAX in text and (not groups or any(map(_is_full, groups.values()))):
        sizes = {group["health"]["maxSize"] for group in groups.values() if _is_full(group)}
        most = f" ({', '.join(map(str, sorted(sizes)))})" if sizes else ""
        yield Finding(f"{adds}: the pool has reached its autoscale.max{most}", _RAISE.format(key=_key(cluster, pod)))
    elif _UNREADY in text:
        yield Finding(f"{adds}: too many nodes of the pool are not ready", "kubectl get nodes")
    elif _LIMITS.search(text):
        yield Finding(one_line(f"{adds}: {text}"), _LOOK, lasts=True)
    elif not there:
        text = re.sub(rf"\d+ {_MAX}(, )?", "", text).strip(", ")  # remove the number of other pools at their maximum
        unfit = not text or all(_UNFIT.search(each) for each in re.split(r", (?=\d+ )", text))
        why = f"{adds}, since the pod would not fit on a new node{f': {text}' if text else ''}"
        yield Finding(one_line(why), _LOOK, lasts=unfit and bool(groups))


def _key(cluster: Cluster, pod: Object) -> str:
    labels = [node["metadata"].get("labels", {}) for node in cluster.all(NODE) if selects(pod, node)]
    keys = {each[POOL_LABEL] for each in labels if POOL_LABEL in each}
    return keys.pop() if len(keys) == 1 else "<key>"


def _azure_error(cluster: Cluster, groups: Sequence[str], since: str = "") -> str:
    status = _status(cluster)
    for name in groups:
        up = status[name]["scaleUp"] if name in status else {}
        info = up.get("backoffInfo", {})
        if up.get("status") == "Backoff":
            code, message = info.get("errorCode", ""), info.get("errorMessage", "")
            return f"{_called(name)}: {message if code in message else f'{code}: {message}'}"
    events = [
        event
        for event in cluster.all(EVENT, _NAMESPACE)
        if event.get("reason") in _FAILED
        and event_time(event) > since
        and (not groups or any(name in event.get("message", "") for name in groups))
    ]
    return str(max(events, key=event_time)["message"]) if events else ""


def _groups(cluster: Cluster, pod: Object) -> dict[str, Any] | None:
    """Returns the status of each node group that the pod may use, by group name; empty if the status cannot be read.

    Returns None if the pod requires a pool that does not autoscale.
    """
    status, wanted = _status(cluster), required_pools(pod)
    if not status or not wanted:
        return status
    return {name: each for name, each in status.items() if (of := _POOL.match(name)) and of[1] in wanted} or None


def _status(cluster: Cluster) -> dict[str, Any]:
    return {group["name"]: group for group in _read(cluster).get("nodeGroups", [])}


def _read(cluster: Cluster) -> dict[str, Any]:
    """Returns the autoscaler's status; empty if unreadable, such as plain text (before 1.30)."""
    return cluster.config(_NAMESPACE, _STATUS, "status")


def _is_full(group: Mapping[str, Any]) -> bool:
    health = group["health"]
    return "maxSize" in health and health.get("cloudProviderTarget", 0) >= health["maxSize"]


def _called(group: str) -> str:
    found = _POOL.match(group)
    return f"pool {found[1]}" if found else f"node group {group}"
