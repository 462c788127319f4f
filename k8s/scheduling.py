"""Tolerations, and whether the scheduler may place a pod on a node, apart from free resources.

Follows the scheduler's plugins NodeAffinity, TaintToleration and NodeUnschedulable, as the cluster autoscaler does
(component-helpers, scheduling/corev1/nodeaffinity/nodeaffinity.go and helpers.go; api, core/v1/toleration.go;
Kubernetes 1.35.4). Tolerations with the operators Lt and Gt match nothing, because the feature gate
TaintTolerationComparisonOperators is off by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from k8s.objects import Object

_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_REPELLING = ("NoSchedule", "NoExecute")


def selects(pod: Object, node: Object) -> bool:
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if any(labels.get(key) != wanted for key, wanted in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = (required or {}).get("nodeSelectorTerms") or []
    return required is None or any(_matches(term, node, labels) for term in terms)


def repelling_taint(pod: Object, node: Object) -> Object | None:
    """Returns the first taint that keeps the pod off the node, or None. A cordon counts as a taint."""
    spec = node["spec"]
    cordoned = {**spec, "taints": [*(spec.get("taints") or []), *([_CORDONED] if spec.get("unschedulable") else [])]}
    return next(iter(untolerated({"spec": cordoned}, pod["spec"])), None)


def untolerated(node: Object, pod_spec: Mapping[str, Any]) -> list[Object]:
    tolerations, taints = pod_spec.get("tolerations") or [], node["spec"].get("taints") or []
    return [taint for taint in taints if taint["effect"] in _REPELLING and not tolerates(tolerations, taint)]


def toleration(taint: str) -> Object:
    key_and_value, _, effect = taint.rpartition(":")
    key, equals, value = key_and_value.partition("=")
    if not equals:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}


def tolerations(taints: Iterable[str]) -> list[Object]:
    return [toleration(taint) for taint in sorted(set(taints))]


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if any(toleration.get(field) not in (None, "", taint[field]) for field in ("effect", "key")):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
    return False


def _matches(term: Object, node: Object, labels: Mapping[str, str]) -> bool:
    """Returns whether a node meets all requirements of a term. A term without requirements matches no node."""
    fields = {"metadata.name": node["metadata"]["name"]}
    met = [_meets(labels.get(each["key"]), each) for each in term.get("matchExpressions") or []]
    met += [_meets(fields.get(each["key"]), each) for each in term.get("matchFields") or []]
    return bool(met) and all(met)


def _meets(found: str | None, requirement: Object) -> bool:
    values = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" as operator if found and all(text.isdecimal() for text in (found, *values)):
            return int(found) > int(values[0]) if operator == "Gt" else int(found) < int(values[0])
    return False
