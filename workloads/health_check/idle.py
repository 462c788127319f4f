"""Checks of nodes that are idle: a CronJob that starts one here and there, with a priority that any job has more of."""

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
"""Below -10, under which the cluster autoscaler makes no node for a pod, nor keeps one for it (its FAQ)."""
MINUTES = 10
"""Between two rounds, each of so many nodes that all have their turn within a day."""
_IMAGE = "node-health"
_FOLDER = "/etc/idle-checks"
_LABEL = "app.kubernetes.io/name"
_LATE = 2
"""Minutes that a round's pod may need to start: it ends itself before the next round is due."""
_ENDS_S = 5
"""Seconds that a check has to end: a job waits for its GPUs."""
_NOBODY = 65534
_RBAC = "rbac.authorization.k8s.io"


def name_of(run: Run) -> str:
    """Of all that there is for the checks of a pool in its namespace; what is the cluster's begins with the stack."""
    return f"idle-{run.name}"


def pod_template(run: Run, priority_class: str) -> Manifest:
    """The pod that checks a node, but for its name and the node: any job's pod drives it out, and it ends at once."""
    found = template(run)
    spec = {
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": _ENDS_S,
        "activeDeadlineSeconds": 2 * run.options.timeout_seconds,
    }
    labels = {_LABEL: name_of(run)}
    return {"metadata": {**found["metadata"], "labels": labels}, "spec": {**found["spec"], **spec}}


def priority_class() -> dict[str, Any]:
    """Of these checks: they drive nobody out."""
    return {
        "value": PRIORITY,
        "preemption_policy": "Never",
        "description": "Checks of idle nodes, which any job drives out",
    }


def rules(namespaced: bool) -> list[dict[str, Any]]:
    """What the CronJob may: see who holds GPUs, and make and delete pods in its own namespace."""
    if namespaced:
        return [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]}]
    return [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]


def cron_job_spec(name: str, image: str) -> Manifest:
    """A round lasts until its checks have ended or the next round is near. So many rounds are kept that their checks,
    which are deleted with them, have ended by then.
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
    """All of it, for the nodes of the run's pool."""
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
