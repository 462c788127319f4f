"""Policies of NVIDIA's operators that are not ready: what the operators say, and which pods they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from diagnosis.cluster import CLUSTER_POLICY, NIC_POLICY, Cluster, Kind, Object, condition, is_ready
from diagnosis.drivers import begun, daemon_sets, is_old, pods_of
from diagnosis.finding import Finding, clock, listed, one_line
from diagnosis.pods import Waiting, waiting


def unready_policies(cluster: Cluster, *, starting: bool = False) -> list[Finding]:
    """Each policy that is not ready, with the pods that are old or fail, and those that only start where asked for."""
    return [
        replace(finding, shared=True)
        for kind in (NIC_POLICY, CLUSTER_POLICY)
        for policy in cluster.all(kind)
        if policy.get("status", {}).get("state") != "ready"
        for finding in _unready(cluster, kind, policy, starting)
    ]


def _unready(cluster: Cluster, kind: Kind, policy: Object, starting: bool) -> Iterator[Finding]:
    name = policy["metadata"]["name"]
    state = policy.get("status", {}).get("state") or "not looked at by its operator yet"
    said = f"{kind.name} {name} is {state}"
    told = _said_by_operator(policy)
    yield Finding(f"{said}: {told}" if told else said, f"kubectl describe {kind.plural} {name}")
    for daemon_set in daemon_sets(cluster, kind):
        pods = [pod for pod in pods_of(cluster, daemon_set) if pod["spec"].get("nodeName")]
        old = [pod for pod in pods if is_old(daemon_set, pod)]
        new = [pod for pod in pods if pod not in old]
        yield from _old(daemon_set, old)
        yield from _failing(daemon_set, new)
        if starting:
            yield from _starting(daemon_set, new)


def _said_by_operator(policy: Object) -> str:
    """The states that are not ready, as each operator tells of them."""
    status = policy.get("status", {})
    states = [entry for entry in status.get("appliedStates") or [] if entry["state"] not in ("ready", "ignore")]
    told = [": ".join(filter(None, [f"{entry['name']} {entry['state']}", entry.get("message")])) for entry in states]
    error = condition(policy, "Error")
    said = [status.get("reason", ""), *told, error.get("message", "") if error.get("status") == "True" else ""]
    return one_line(", ".join(filter(None, said)))


def _old(daemon_set: Object, pods: Sequence[Object]) -> Iterator[Finding]:
    """Those that serve, and those that do not and so may be deleted at once."""
    serving = [pod for pod in pods if is_ready(pod)]
    if serving:
        why = f"{_placed(daemon_set, serving)} old: replaced only once deleted (OnDelete)"
        yield Finding(why, "roll these nodes, as docs/drivers.md shows; their devices serve meanwhile")
    if idle := [pod["metadata"] for pod in pods if pod not in serving]:
        why = f"{_placed(daemon_set, [pod for pod in pods if pod not in serving])} old and not ready"
        yield Finding(why, f"kubectl delete pod -n {idle[0]['namespace']} {' '.join(each['name'] for each in idle)}")


def _failing(daemon_set: Object, pods: Sequence[Object]) -> Iterator[Finding]:
    """One finding for each reason, though many pods may have it."""
    alike: dict[str, list[tuple[Object, Waiting]]] = {}
    for pod in pods:
        if (held := waiting(pod)) and held.fails:
            alike.setdefault(held.told, []).append((pod, held))
    for told, failing in alike.items():
        pod, held = failing[0]
        yield Finding(one_line(f"{_placed(daemon_set, [pod for pod, _ in failing])} failing: {told}"), held.look(pod))


def _starting(daemon_set: Object, pods: Sequence[Object]) -> Iterator[Finding]:
    starting = [pod for pod in pods if not is_ready(pod) and not ((held := waiting(pod)) and held.fails)]
    if starting:
        metadata, since = starting[0]["metadata"], begun(starting[0])
        why = f"{_placed(daemon_set, starting)} starting{f' since {clock(since)}' if since else ''}"
        yield Finding(why, f"kubectl logs -n {metadata['namespace']} {metadata['name']} --all-containers")


def _placed(daemon_set: Object, pods: Sequence[Object]) -> str:
    """The pods with their nodes, and the verb."""
    names = listed([f"{pod['metadata']['name']} on node {pod['spec']['nodeName']}" for pod in pods], "pod")
    return f"{names} (DaemonSet {daemon_set['metadata']['name']}) {'is' if len(pods) == 1 else 'are'}"
