"""Rollout of Deployments, StatefulSets and DaemonSets."""

from __future__ import annotations

from k8s.objects import Object
from simulator.plugins.kubernetes.awaiters.base import Look, Progress
from simulator.plugins.kubernetes.awaiters.pods import pod_errors

_REVISION = "deployment.kubernetes.io/revision"


def deployment(look: Look) -> Progress:
    """Ready if the Deployment is available and all replicas of its newest ReplicaSet are ready."""
    conditions = {item["type"]: item for item in look.live.get("status", {}).get("conditions") or []}
    revision = _annotation(look.live, _REVISION)
    owned = look.owned("apps/v1", "ReplicaSet", look.live)
    newest = next((item for item in owned if revision and _annotation(item, _REVISION) == revision), None)
    wanted = newest["spec"].get("replicas", 1) if newest else look.live["spec"].get("replicas", 1)
    ready = newest.get("status", {}).get("readyReplicas", 0) if newest else 0
    available = _is(conditions, "Available")
    rolled_out = revision == "1" or conditions.get("Progressing", {}).get("reason") == "NewReplicaSetAvailable"
    done = look.observed and newest is not None and available and rolled_out and ready >= wanted
    if done:
        return Progress(done=True)
    reasons = [f"[{item['reason']}] {item['message']}" for item in conditions.values() if item["status"] != "True"]
    reasons += _shortfall(available, rolled_out)
    reasons += [text for pod in (look.owned_pods(newest) if newest else []) for text in pod_errors(pod)]
    return Progress(
        done=False,
        status=f"Waiting for app ReplicaSet to be available ({ready}/{wanted} Pods available)",
        reasons=reasons,
    )


def stateful_set(look: Look) -> Progress:
    """Ready if all replicas are ready at the newest revision. With strategy OnDelete, old revisions count too."""
    status, spec = look.live.get("status", {}), look.live["spec"]
    wanted, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
    current, target = status.get("currentRevision", ""), status.get("updateRevision", "")
    first = look.live["metadata"].get("generation", 1) <= 1
    by_hand = not first and spec.get("updateStrategy", {}).get("type") == "OnDelete"
    counts = [status.get("replicas", 0), ready] + ([] if by_hand else [status.get("currentReplicas", 0)])
    replicas_ready = all(count == wanted for count in counts)
    revision_ready = by_hand or (bool(current) and current == target)
    if look.observed and replicas_ready and revision_ready:
        return Progress(done=True)
    reasons = [] if replicas_ready else [f"{ready} out of {wanted} replicas succeeded readiness checks"]
    if not revision_ready:
        reasons.append(f'StatefulSet controller failed to advance from revision "{current}" to revision "{target}"')
    reasons += [text for pod in look.owned_pods(look.live) for text in pod_errors(pod)]
    if first:
        text = f"[1/2] Waiting for StatefulSet to create Pods ({ready}/{wanted} Pods ready)"
    elif not replicas_ready:
        text = f"[1/3] Waiting for StatefulSet update to roll out ({ready}/{wanted} Pods ready)"
    else:
        text = "[2/3] Waiting for StatefulSet to update .status.currentRevision"
    return Progress(done=False, status=text, reasons=reasons)


def daemon_set(look: Look) -> Progress:
    """Ready if each selected node, if any, has an available pod of the newest template."""
    status = look.live.get("status", {})
    wanted = status.get("desiredNumberScheduled", 0)
    stages = {
        "Current": status.get("currentNumberScheduled", 0),
        "Updated": status.get("updatedNumberScheduled", 0),
        "Available": status.get("numberAvailable", 0),
        "Ready": status.get("numberReady", 0),
    }
    if not look.observed:
        return Progress(done=False, status="Waiting for the DaemonSet controller")
    behind = [f"{name}: {count}/{wanted}" for name, count in stages.items() if count < wanted]
    if not behind:
        return Progress(done=True)
    reasons = [text for pod in look.owned_pods(look.live) for text in pod_errors(pod)]
    return Progress(done=False, status=behind[0], reasons=reasons)


def _annotation(obj: Object, name: str) -> str:
    return str(obj["metadata"].get("annotations", {}).get(name, ""))


def _is(conditions: dict[str, Object], name: str) -> bool:
    return bool(conditions.get(name, {}).get("status") == "True")


def _shortfall(available: bool, rolled_out: bool) -> list[str]:
    if not available:
        return ["Minimum number of live Pods was not attained"]
    if not rolled_out:
        return ["Minimum number of Pods to consider the application live was not attained"]
    return ["Attempted to roll forward to new ReplicaSet, but minimum number of Pods did not become live"]
