"""How far a RayJob is, what it waits for, and why its attempts failed.

The states and reasons are those of KubeRay 1.6.2 (ray-operator/apis/ray/v1/rayjob_types.go). A RayJob is tried again
with another cluster, and then no longer says why it failed (ray-operator/controllers/ray/rayjob_controller.go,
checkBackoffLimitAndUpdateStatusIfNeeded, JobDeploymentStatusRetrying).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diagnosis.cluster import JOB, Cluster, Object, where
from diagnosis.finding import Finding, joined, one_line

RETRYING = "Retrying"
"""Status of a RayJob whose cluster is deleted so that another one can be made."""
_PHASES = {"Running": "Running", "Failed": "Failed", "ValidationFailed": "Failed"}
_SUBMISSION = ("SubmissionFailed", "JobDeploymentStatusTransitionGracePeriodExceeded")
"""Reasons whose cause is in the log of the submitter, not in that of the head."""
_SIDECAR = "ray-job-submitter"
"""Container of the head that submits the job, with submissionMode SidecarMode (controllers/ray/utils/constant.go)."""


def phase(status: Object) -> tuple[str, str]:
    """Returns the phase and the message of a RayJob: of one that is complete, the job may have been stopped."""
    deployed, job = status["jobDeploymentStatus"], status.get("jobStatus", "")
    if deployed == "Complete":
        return ("Succeeded" if job == "SUCCEEDED" else "Terminated"), _why(status)
    found = _PHASES.get(deployed, "Pending")
    return found, _why(status) if found == "Failed" else status.get("message", "") if found == "Pending" else ""


def waiting(job: Object) -> Iterator[Finding]:
    """Yields what KubeRay waits for, where pods do not tell."""
    deployed, look = job["status"].get("jobDeploymentStatus"), f"kubectl describe rayjob {where(job)}"
    if deployed == "Waiting":
        why = "KubeRay waits until a user submits its job (submissionMode InteractiveMode)"
        yield Finding(why, f"{look}    # ray job submit, then set spec.jobId", lasts=True)
    elif deployed == "Suspending":
        yield Finding("KubeRay deletes its cluster, since it is suspended", look, passing=True)


def retries(job: Object) -> str:
    """Returns how many attempts have failed; empty if none has. The last reason is known until its cluster is gone."""
    status = job["status"]
    if not (failed := status.get("failed") or 0):
        return ""
    told = f"{failed} of at most {(job['spec'].get('backoffLimit') or 0) + 1} attempts have failed"
    if status.get("jobDeploymentStatus") == RETRYING:
        told = f"{told}, and KubeRay takes its cluster away to make another"
        return one_line(f"{told}; the last one: {_why(status)}" if _why(status) else told)
    return told


def failed_submitter(cluster: Cluster, job: Object, pods: Iterable[Object]) -> str:
    """Returns the command that shows the log of the submitter, if that is what has failed; else an empty string."""
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
