"""Priorities of teams' jobs: which of a team's own come first. Pure."""

from __future__ import annotations

from typing import Any

CLASSES = {
    "low-priority": (1, "Jobs that give way to all others of their team which name a class."),
    "default-priority": (5, "Jobs that are as important as most."),
    "high-priority": (10, "Jobs that come before all others of their team."),
}
"""Of teams, with their values and what they are for: MLBatch's (its setup.k8s/mlbatch-priorities.yaml).

There one of them is every pod's that names none. Here none is: it would be that of AKS's own pods, and of all others in
the cluster.
"""


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
