"""Checks idle nodes: a CronJob starts check pods with a lower priority than any job."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.context import WorkloadContext
from config.data.scheduling import ON_SYSTEM_POOL
from workloads._lib.pods import Manifest
from workloads.health_check.manifests import Run, template

PRIORITY = -1000
"""The priority is below -10, so the cluster autoscaler neither creates nor keeps nodes for checks (its FAQ)."""
MINUTES = 10
"""Minutes between rounds. The rounds cover all nodes within a day."""
_IMAGE = "node-health"
_FOLDER = "/etc/idle-checks"
_LABEL = "app.kubernetes.io/name"
_LATE = 2
"""Minutes that a round's Job may last beyond `MINUTES`, because its pod must start first."""
_ENDS_S = 5
"""Grace period of a check in seconds, while a job waits for its GPUs."""
_NOBODY = 65534
_RBAC = "rbac.authorization.k8s.io"


def name_of(run: Run) -> str:
    return f"idle-{run.name}"


def pod_template(run: Run, priority_class: str) -> Manifest:
    """Returns the pod that checks a node; its name and node are set later. Jobs' pods preempt it, and it ends fast."""
    found = template(run)
    spec = {
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": _ENDS_S,
        "activeDeadlineSeconds": 2 * run.options.timeout_seconds,
    }
    labels = {_LABEL: name_of(run)}
    return {"metadata": {**found["metadata"], "labels": labels}, "spec": {**found["spec"], **spec}}


def priority_class() -> dict[str, Any]:
    return {
        "value": PRIORITY,
        "preemption_policy": "Never",
        "description": "Checks of idle nodes, which any job preempts",
    }


def rules(namespaced: bool) -> list[dict[str, Any]]:
    if namespaced:
        return [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]}]
    return [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]


def cron_job_spec(name: str, image: str) -> Manifest:
    """Returns the spec of the CronJob. A round lasts until its checks end or the next round is near.

    The CronJob keeps Jobs of old rounds until their checks have ended, because checks are deleted with their Job.
    """

    def field(name: str, path: str) -> Manifest:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    controller = "metadata.labels['batch.kubernetes.io/{}']"
    container = {
        "name": name,
        "image": image,
        "command": ["/opt/node-health/idle_checks.py"],
        "env": [
            {"name": "MINUTES", "value": str(MINUTES)},
            {"name": "TEMPLATES", "value": _FOLDER},
            {"name": "LABEL", "value": f"{_LABEL}={name}"},
            field("NAMESPACE", "metadata.namespace"),
            field("JOB", controller.format("job-name")),
            field("JOB_UID", controller.format("controller-uid")),
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "templates", "mountPath": _FOLDER, "readOnly": True}],
    }
    pod = {
        "restartPolicy": "Never",
        **ON_SYSTEM_POOL,
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True, "runAsUser": _NOBODY, "runAsGroup": _NOBODY},
        "containers": [container],
        "volumes": [{"name": "templates", "configMap": {"name": name}}],
    }
    return {
        "schedule": f"*/{MINUTES} * * * *",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": MINUTES * 60,
        "successfulJobsHistoryLimit": 6,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "spec": {"backoffLimit": 0, "activeDeadlineSeconds": (MINUTES + _LATE) * 60, "template": {"spec": pod}},
        },
    }


def idle_checks(run: Run, context: WorkloadContext, needs: list[pulumi.Resource]) -> None:
    name = name_of(run)
    cluster_name = f"{pulumi.get_stack()}-{name}"
    metadata = {"name": name, "namespace": context.namespace}
    kubernetes.scheduling.v1.PriorityClass(
        name, metadata={"name": cluster_name}, **priority_class(), opts=context.child()
    )
    templates = {f"{run.pool.agent_pool}.json": json.dumps(pod_template(run, cluster_name), sort_keys=True)}
    files = kubernetes.core.v1.ConfigMap(name, metadata=metadata, data=templates, opts=context.child())
    account = kubernetes.core.v1.ServiceAccount(name, metadata=metadata, opts=context.child())
    subject = {"kind": "ServiceAccount", "name": name, "namespace": context.namespace}
    role = kubernetes.rbac.v1.ClusterRole(
        f"{name}-cluster", metadata={"name": cluster_name}, rules=rules(namespaced=False), opts=context.child()
    )
    own = kubernetes.rbac.v1.Role(name, metadata=metadata, rules=rules(namespaced=True), opts=context.child())
    bindings = [
        kubernetes.rbac.v1.ClusterRoleBinding(
            f"{name}-cluster",
            metadata={"name": cluster_name},
            role_ref={"apiGroup": _RBAC, "kind": "ClusterRole", "name": role.metadata["name"]},
            subjects=[subject],
            opts=context.child(),
        ),
        kubernetes.rbac.v1.RoleBinding(
            name,
            metadata=metadata,
            role_ref={"apiGroup": _RBAC, "kind": "Role", "name": own.metadata["name"]},
            subjects=[subject],
            opts=context.child(),
        ),
    ]
    kubernetes.batch.v1.CronJob(
        name,
        metadata=metadata,
        spec=cron_job_spec(name, context.image(_IMAGE)),
        opts=context.child(depends_on=[*context.ready, *needs, account, files, *bindings]),
    )
