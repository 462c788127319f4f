"""What members of a team may do, in their team's namespace and nowhere else, and their jobs' priorities. Pure."""

from __future__ import annotations

from typing import Any

from config.schema.teams import TeamSettings

CLASSES = {
    "low-priority": (1, "Jobs that give way to all others of their team which name a class."),
    "default-priority": (5, "Jobs that are as important as most."),
    "high-priority": (10, "Jobs that come before all others of their team."),
}
"""Of teams, with their values and what they are for: MLBatch's (its setup.k8s/mlbatch-priorities.yaml).

There one of them is every pod's that names none. Here none is: it would be that of AKS's own pods, and of all others in
the cluster.
"""
ROLE = "mlbatch-edit"
FRAMEWORKS = {
    "batch/job": "jobs",
    "kubeflow.org/pytorchjob": "pytorchjobs",
    "ray.io/raycluster": "rayclusters",
    "ray.io/rayjob": "rayjobs",
    "workload.codeflare.dev/appwrapper": "appwrappers",
}
"""Kinds of jobs that Kueue queues, by its names for them: of nothing else may members make pods."""
_READ = ("get", "list", "watch")
_END = ("delete", *_READ)
_EDIT = ("create", "patch", "update", *_END)
_RBAC = "rbac.authorization.k8s.io"


def priority_class(name: str) -> dict[str, Any]:
    """One of them. The queue alone takes quota from jobs: a scheduler would end pods of others for these."""
    value, description = CLASSES[name]
    return {
        "metadata": {"name": name},
        "value": value,
        "global_default": False,
        "preemption_policy": "Never",
        "description": description,
    }


def rules() -> list[dict[str, Any]]:
    """Of the ClusterRole that is bound in each team's namespace.

    MLBatch's has the same, but for Jobs, which it queues by AppWrapper alone. Pods, Deployments and StatefulSets can be
    looked at and ended, and not made: they would go past the queue.
    """
    core = ("services", "secrets", "configmaps", "persistentvolumeclaims")
    return [
        *(_rule(framework.partition("/")[0], (kinds,), _EDIT) for framework, kinds in FRAMEWORKS.items()),
        _rule("", core, _EDIT),
        _rule("", ("pods",), _END),
        _rule("apps", ("deployments", "statefulsets"), _END),
        _rule("scheduling.x-k8s.io", ("podgroups",), _EDIT),  # coscheduling's, of gangs
        _rule("", ("events",), _READ),
        _rule("", ("namespaces", "pods/log"), ("get",)),
        _rule("", ("pods/exec", "pods/portforward"), ("create",)),
        _rule("kueue.x-k8s.io", ("localqueues", "workloads"), _READ),
        _rule("visibility.kueue.x-k8s.io", ("localqueues/pendingworkloads",), ("get",)),
    ]


def _rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def binding(team: TeamSettings) -> dict[str, Any]:
    """Who has the role in a team's namespace. Names count as they are written, and tokens have groups in lower case."""
    groups = sorted({name.lower() for name in team.groups})
    people = [("User", name) for name in sorted({*team.users})] + [("Group", name) for name in groups]
    return {
        "role_ref": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"apiGroup": _RBAC, "kind": kind, "name": name} for kind, name in people],
    }
