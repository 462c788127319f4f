"""Readiness of Pods, success of Jobs, and the errors of Pods."""

from __future__ import annotations

from k8s.objects import Object
from simulator.plugins.kubernetes.awaiters.base import Look, Progress

_NORMAL_WAITING = {"ContainerCreating", "PodInitializing"}
_STAGES = {"PodScheduled": "to be scheduled", "Initialized": "to be initialized", "Ready": "to be ready"}


def pod(look: Look) -> Progress:
    status = look.live.get("status", {})
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    for stage, text in _STAGES.items():
        if conditions.get(stage) != "True" and not (stage == "Ready" and status.get("phase") == "Succeeded"):
            waiting = f'Waiting for Pod "{look.display_name}" {text}'
            return Progress(done=False, status=waiting, reasons=pod_errors(look.live))
    return Progress(done=True)


def job(look: Look) -> Progress:
    """Ready if the Job has completed. A permanent failure ends the wait."""
    status = look.live.get("status", {})
    conditions = {item["type"]: item for item in status.get("conditions") or [] if item["status"] == "True"}
    if "Complete" in conditions:
        return Progress(done=True)
    failure = conditions.get("Failed")
    reasons = [text for each in look.owned_pods(look.live) for text in pod_errors(each)]
    if failure and failure.get("reason") in ("BackoffLimitExceeded", "DeadlineExceeded"):
        reasons.append(f"[{failure['reason']}] {failure.get('message', '')}")
        return Progress(done=False, failed=True, reasons=reasons)
    if not status.get("startTime"):
        return Progress(done=False, status=f'Waiting for Job "{look.display_name}" to start', reasons=reasons)
    counts = " | ".join(f"{name}: {status.get(name.lower(), 0)}" for name in ("Active", "Succeeded", "Failed"))
    return Progress(done=False, status=f'Waiting for Job "{look.display_name}" to succeed ({counts})', reasons=reasons)


def pod_errors(obj: Object) -> list[str]:
    name, status = obj["metadata"]["name"], obj.get("status", {})
    unmet = [item for item in status.get("conditions") or [] if item["status"] != "True" and item.get("message")]
    lines = [item["message"] for item in unmet]
    for container in status.get("containerStatuses") or []:
        if not container.get("ready"):
            lines += _container_errors(container)
    return [f"[Pod {name}]: {line}" for line in lines]


def _container_errors(container: Object) -> list[str]:
    state, lines = container.get("state", {}), []
    waiting, terminated = state.get("waiting"), state.get("terminated")
    if waiting and waiting.get("reason") not in _NORMAL_WAITING:
        lines.append(f"[{waiting.get('reason')}] {waiting.get('message', '')}".strip())
    if terminated and terminated.get("reason") and terminated["reason"] != "Completed":
        message = f"[{terminated['reason']}] {terminated['message']}" if terminated.get("message") else ""
        lines.append(message or f'container "{container["name"]}" completed with exit code {terminated["exitCode"]}')
    last = container.get("lastState", {}).get("terminated")
    if last:
        lines.append(
            f'container "{container["name"]}" terminated at {last.get("finishedAt")} '
            f"({last.get('reason')}: exit code {last.get('exitCode')})"
        )
    return lines
