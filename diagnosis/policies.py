"""Reports policies of NVIDIA's operators that are not ready, with the operators' messages and the pods that block a
policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from diagnosis.cluster import CLUSTER_POLICY, NIC_POLICY, Cluster, Kind
from diagnosis.drivers import begun, daemon_sets, in_use, is_old, pods_of
from diagnosis.finding import Finding, clock, grouped, joined, listed, one_line
from diagnosis.lost import is_lost
from diagnosis.pods import waiting
from k8s.objects import Object, condition, is_ready


def unready_policies(cluster: Cluster, *, starting: bool = False) -> list[Finding]:
    return [
        replace(finding, shared=True)
        for kind in (NIC_POLICY, CLUSTER_POLICY)
        for policy in cluster.all(kind)
        if policy["status"].get("state") != "ready"
        for finding in _unready(cluster, kind, policy, starting)
    ]


def _unready(cluster: Cluster, kind: Kind, policy: Object, starting: bool) -> Iterator[Finding]:
    name = policy["metadata"]["name"]
    state = policy["status"].get("state") or "not processed by its operator yet"
    why = joined(f"{kind.name} {name} is {state}", _unready_states(policy))
    yield Finding(why, f"kubectl describe {kind.plural} {name}")
    begin: dict[str, list[Object]] = {}
    for daemon_set in daemon_sets(cluster, kind):
        pods = [pod for pod in pods_of(cluster, daemon_set) if pod["spec"].get("nodeName")]
        old = [pod for pod in pods if is_old(daemon_set, pod)]
        new = [pod for pod in pods if pod not in old]
        yield from _old(cluster, old)
        yield from _failing(new)
        coming = [pod for pod in new if not is_ready(pod) and not is_lost(cluster, pod)]
        if waited := [pod for pod in coming if not ((held := waiting(pod)) and held.fails)]:
            begin[daemon_set["metadata"]["name"]] = waited
    if starting and begin:
        yield _starting(begin)


def _unready_states(policy: Object) -> str:
    status = policy["status"]
    states = [entry for entry in status.get("appliedStates", []) if entry["state"] not in ("ready", "ignore")]
    applied = [joined(f"{entry['name']} {entry['state']}", entry.get("message")) for entry in states]
    error = condition(policy, "Error")
    message = error.get("message", "") if error.get("status") == "True" else ""
    return one_line(joined(status.get("reason", ""), *applied, message, by=", "))


def _old(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    serving = [pod for pod in pods if is_ready(pod)]
    idle = [pod for pod in pods if pod not in serving]
    if serving:
        why = f"{_placed(serving)} old: an old pod is replaced only after you delete it (OnDelete)"
        look = f"kubectl get pods -n {serving[0]['metadata']['namespace']} -o wide"
        yield Finding(
            why, f"{look}    # roll out the driver on these nodes (docs/drivers.md); until then, their devices work"
        )
    if idle:
        names = [pod["metadata"]["name"] for pod in idle]
        fix = f"kubectl delete pod -n {idle[0]['metadata']['namespace']} {' '.join(names)}{in_use(cluster, idle)}"
        yield Finding(f"{_placed(idle)} old and not ready", fix)


def _failing(pods: Sequence[Object]) -> Iterator[Finding]:
    found = ((pod, waiting(pod)) for pod in pods)
    for why, failing in grouped((held.description, (pod, held)) for pod, held in found if held and held.fails).items():
        pod, held = failing[0]
        yield Finding(one_line(f"{_placed([pod for pod, _ in failing])} failing: {why}"), held.look(pod))


def _starting(pods: Mapping[str, Sequence[Object]]) -> Finding:
    """Returns one finding for all starting DaemonSets, because they wait for each other."""
    metadata = next(iter(pods.values()))[0]["metadata"]
    nodes = sorted({pod["spec"]["nodeName"] for group in pods.values() for pod in group})
    since = min(begun(pod) for group in pods.values() for pod in group)
    when = f" since {clock(since)}" if since else ""
    why = f"pods of {listed(list(pods), 'DaemonSet')} are starting on {listed(nodes, 'node')}{when}"
    return Finding(why, f"kubectl get pods -n {metadata['namespace']} -o wide")


def _placed(pods: Sequence[Object]) -> str:
    names = [f"{pod['metadata']['name']} on node {pod['spec']['nodeName']}" for pod in pods]
    return f"{listed(names, 'pod')} {'is' if len(pods) == 1 else 'are'}"
