"""An alert for each condition, and for unknown conditions.

The alerts query kube-state-metrics, which reports the state `unknown` and the node's name, and works without a pod of
node-problem-detector. A gauge of node-problem-detector is 0 both for unknown and for no problem
(pkg/problemmetrics/problem_metrics.go of v1.34.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from config.data.scheduling import CONDITION_PREFIX
from operators.node_problem_detector.conditions import condition_type, conditions

STATES = "kube_node_status_condition"
UNKNOWN, AWAY = "NodeConditionUnknown", "NodeProblemDetectorAway"


def alert_name(condition: str) -> str:
    """Returns the name of a condition's alert, which must differ from alerts of DCGM and node-exporter."""
    return f"Node{condition}"


def rules() -> dict[str, Any]:
    return {"groups": [{"name": "node-conditions", "rules": [*_problems(), _unknown(), _away()]}]}


def _problems() -> Iterator[dict[str, Any]]:
    for name, each in conditions().items():
        yield {
            "alert": alert_name(name),
            "expr": f'{STATES}{{condition="{condition_type(name)}", status="true"}} == 1',
            "for": each.alert.lasts,
            "labels": {"severity": each.alert.severity},
            "annotations": {
                "summary": f"Node {{{{ $labels.node }}}}: {each.means}",
                "description": f"Its condition {{{{ $labels.condition }}}} has the details. What to do: {each.do}.",
            },
        }


def _unknown() -> dict[str, Any]:
    return {
        "alert": UNKNOWN,
        "expr": f'{STATES}{{condition=~"{CONDITION_PREFIX}.*", status="unknown"}} == 1',
        "for": "30m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "Node {{ $labels.node }}: the state of {{ $labels.condition }} is unknown",
            "description": "Its check cannot run; the condition's message has the reason.",
        },
    }


def _away() -> dict[str, Any]:
    found = 'kube_daemonset_status_number_unavailable{daemonset=~"node-problem-detector-.*"}'
    return {
        "alert": AWAY,
        "expr": f"{found} > 0",
        "for": "30m",
        "labels": {"severity": "warning"},
        "annotations": {
            "summary": "{{ $labels.daemonset }} does not run on {{ $value }} nodes, so their conditions are outdated",
        },
    }
