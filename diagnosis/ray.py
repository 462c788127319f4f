"""Reports the progress of RayJobs and RayServices, what they wait for, and why attempts or Serve applications failed.

States and reasons are those of KubeRay 1.6.2 (ray-operator/apis/ray/v1/rayjob_types.go, rayservice_types.go and
raycronjob_types.go) and of Ray Serve (Ray's src/ray/protobuf/serve.proto). KubeRay retries a RayJob with another
cluster, and then removes the reason of the failure (ray-operator/controllers/ray/rayjob_controller.go,
checkBackoffLimitAndUpdateStatusIfNeeded, JobDeploymentStatusRetrying).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diagnosis.cluster import JOB, Cluster, where
from diagnosis.finding import Finding, clock, joined, one_line
from k8s.objects import Object, condition, holds

RETRYING = "Retrying"
"""Status of a RayJob while its cluster is deleted for a retry."""
_PHASES = {"Running": "Running", "Failed": "Failed", "ValidationFailed": "Failed"}
_ENDED = {
    "InitializingTimeout": "KubeRay does not retry: delete the RayService and create it again",
    "ValidationFailed": "KubeRay retries after a change of the spec",
}
_COMING = ("NOT_STARTED", "DEPLOYING", "DELETING")
_SUBMISSION = ("AppFailed", "SubmissionFailed", "JobDeploymentStatusTransitionGracePeriodExceeded")
"""Reasons of failures with the cause in the log of the submitter, not of the head.

The submitter also prints the job's log, with `ray job logs --follow` (ray-project/kuberay 1.6.2,
ray-operator/controllers/ray/common/job.go).
"""
_SIDECAR = "ray-job-submitter"
"""The head's container that submits the job if submissionMode is SidecarMode (controllers/ray/utils/constant.go)."""


def phase(status: Object) -> tuple[str, str]:
    deployed, job = status["jobDeploymentStatus"], status.get("jobStatus", "")
    if deployed == "Complete":
        return ("Succeeded" if job == "SUCCEEDED" else "Terminated"), _why(status)
    found = _PHASES.get(deployed, "Pending")
    return found, _why(status) if found == "Failed" else status.get("message", "") if found == "Pending" else ""


def waiting(job: Object) -> Iterator[Finding]:
    deployed, look = job["status"].get("jobDeploymentStatus"), f"kubectl describe rayjob {where(job)}"
    if deployed == "Waiting":
        why = "KubeRay waits until a user submits its job (submissionMode InteractiveMode)"
        yield Finding(why, f"{look}    # ray job submit, then set spec.jobId", lasts=True)
    elif deployed == "Suspending":
        yield Finding("KubeRay deletes its cluster, since it is suspended", look, passing=True)


def serves(service: Object) -> tuple[str, str]:
    """Returns phase and message of a RayService. KubeRay before 1.3 has only serviceStatus, no condition Ready."""
    ready, running = condition(service, "Ready"), service["status"].get("serviceStatus") == "Running"
    if ready.get("status", str(running)) == "True":
        return "Running", ""
    then = _ENDED.get(ready.get("reason", ""), "")
    return "Failed" if then else "Pending", joined(_why(ready), then, by="; ")


def serving(cluster: Cluster, service: Object) -> Iterator[Finding]:
    status, look = service["status"], f"kubectl describe rayservice {where(service)}"
    active, pending = status.get("activeServiceStatus", {}), status.get("pendingServiceStatus", {})
    logs = f"{look}    # logs: /tmp/ray/session_latest/logs/serve of its head pod"
    for each in (pending, active):
        for name, application in each.get("applicationStatuses", {}).items():
            if (state := application.get("status")) not in ("RUNNING", "", None):
                why = f"Ray Serve's application {name} is {state} in RayCluster {each.get('rayClusterName', '')}"
                yield Finding(one_line(joined(why, _of_deployments(application))), logs, passing=state in _COMING)
    events = [event for event in cluster.events(service) if event["reason"].endswith("ServeApplications")]
    if events and events[-1]["reason"].startswith("Failed"):
        yield Finding(one_line(events[-1]["message"]), look)
    if active.get("rayClusterName") and pending.get("rayClusterName"):
        old, new, share = active["rayClusterName"], pending["rayClusterName"], pending.get("trafficRoutedPercent")
        why = f"KubeRay upgrades it: RayCluster {old} serves until {new} is ready"
        if holds(service, "RollbackInProgress"):
            why = f"KubeRay rolls back its upgrade: requests go back to RayCluster {old}"
        part = f"; {new} gets {share}% of the requests" if share is not None else ""
        yield Finding(f"{why}{part}", look, passing=True)


def scheduled(cron_job: Object, kind: str) -> Finding:
    last = cron_job["status"].get("lastScheduleTime")
    since = f"; the last one: {clock(last)}" if last else "; none yet"
    by, made = ("Kubernetes", "Job") if kind == "cronjob" else ("KubeRay", "RayJob")
    why = f"{by} creates a {made} on the schedule {cron_job['spec'].get('schedule', '')}{since}"
    return Finding(why, f"kubectl get {made.lower()}s -n {cron_job['metadata']['namespace']}", passing=True)


def _of_deployments(application: Object) -> str:
    deployments = application.get("serveDeploymentStatuses", {}).items()
    messages = [f"{name} {each.get('status', '')}: {each['message']}" for name, each in deployments
            if each.get("status") != "HEALTHY" and each.get("message")]  # fmt: skip
    return "; ".join(messages) or str(application.get("message", ""))


def retries(job: Object) -> str:
    """Returns how many attempts have failed; empty if none. Adds the last reason, which KubeRay keeps only until the
    retry.
    """
    status = job["status"]
    if not (failed := status.get("failed") or 0):
        return ""
    text = f"{failed} of at most {(job['spec'].get('backoffLimit') or 0) + 1} attempts have failed"
    if status.get("jobDeploymentStatus") == RETRYING:
        text = f"{text}, and KubeRay is replacing its cluster"
        return one_line(f"{text}; the last attempt: {_why(status)}" if _why(status) else text)
    return text


def failed_submitter(cluster: Cluster, job: Object, pods: Iterable[Object]) -> str:
    metadata = job["metadata"]
    if job["status"].get("reason") not in _SUBMISSION:
        return ""
    for submitter in cluster.owned(JOB, metadata["namespace"], [metadata["uid"]]):
        return f"kubectl logs -n {metadata['namespace']} job/{submitter['metadata']['name']}"
    for pod in pods:
        if any(container.get("name") == _SIDECAR for container in pod["spec"]["containers"]):
            return f"kubectl logs {where(pod)} -c {_SIDECAR}"
    return ""


def _why(status: Object) -> str:
    return one_line(joined(status.get("reason"), status.get("message")))
