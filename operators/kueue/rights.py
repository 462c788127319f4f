"""The rights of a team's members in its namespace, and the priority classes of their jobs."""

from __future__ import annotations

from typing import Any

from config.schema.teams import TeamSettings

CLASSES = {
    "low-priority": (1, "The team's other jobs with a priority class run before these jobs."),
    "default-priority": (5, "The usual priority of the team's jobs. Jobs must name it: no class is the default."),
    "high-priority": (10, "These jobs run before the team's other jobs."),
}
"""Classes of teams with their values and descriptions, from MLBatch (its setup.k8s/mlbatch-priorities.yaml).

Unlike in MLBatch, no class is the default, because a default would apply to all pods of the cluster.
"""
ROLE = "mlbatch-edit"
FRAMEWORKS = {
    "batch/job": "jobs",
    "kubeflow.org/pytorchjob": "pytorchjobs",
    "ray.io/raycluster": "rayclusters",
    "ray.io/rayjob": "rayjobs",
    "workload.codeflare.dev/appwrapper": "appwrappers",
}
"""Kinds of jobs that Kueue queues, by the names that Kueue uses. Members can only create pods through these jobs."""
_READ = ("get", "list", "watch")
_END = ("delete", *_READ)
_EDIT = ("create", "patch", "update", *_END)
_RBAC = "rbac.authorization.k8s.io"


def priority_class(name: str) -> dict[str, Any]:
    """Returns a class without preemption: the scheduler would also preempt other teams' pods, unlike Kueue."""
    value, description = CLASSES[name]
    return {
        "metadata": {"name": name},
        "value": value,
        "global_default": False,
        "preemption_policy": "Never",
        "description": description,
    }


def rules() -> list[dict[str, Any]]:
    """Returns the rules of the ClusterRole that is bound in each team's namespace.

    The rules are MLBatch's, plus Jobs, which MLBatch only queues in AppWrappers. Members can view and delete Pods,
    Deployments and StatefulSets, but cannot create them, because these would bypass the queue.
    """
    core = ("services", "secrets", "configmaps", "persistentvolumeclaims")
    return [
        *(_rule(framework.partition("/")[0], (kinds,), _EDIT) for framework, kinds in FRAMEWORKS.items()),
        _rule("", core, _EDIT),
        _rule("", ("pods",), _END),
        _rule("apps", ("deployments", "statefulsets"), _END),
        _rule("scheduling.x-k8s.io", ("podgroups",), _EDIT),  # gangs of coscheduling
        _rule("", ("events",), _READ),
        _rule("", ("namespaces", "pods/log"), ("get",)),
        _rule("", ("pods/exec", "pods/portforward"), ("create",)),
        _rule("kueue.x-k8s.io", ("localqueues", "workloads"), _READ),
        _rule("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)),
    ]


def _rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def binding(team: TeamSettings) -> dict[str, Any]:
    """Returns the binding of the role to a team's members. User names are case-sensitive; group ids in tokens are
    lower-case.
    """
    groups = sorted({name.lower() for name in team.groups})
    people = [("User", name) for name in sorted({*team.users})] + [("Group", name) for name in groups]
    return {
        "role_ref": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"apiGroup": _RBAC, "kind": kind, "name": name} for kind, name in people],
    }
