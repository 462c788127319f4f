"""Describes which nodes a pod requires."""

from __future__ import annotations

from fractions import Fraction

from config.data.scheduling import AGENT_POOL_LABEL, GPU_TAINT, SPOT_TAINT, SYSTEM_TAINT
from diagnosis.finding import Obstacle, is_past, joined, later
from k8s.objects import Object
from k8s.quantities import is_quantity, value
from k8s.resources import pod_requests

_OF_POOL = f"{AGENT_POOL_LABEL}="
_JOINING_S = 120
"""Longest time until a new node is ready and labelled; AKS and the operators take about a minute."""


def too_small(node: Object, pod: Object) -> tuple[str, str, str] | None:
    has = node.get("status", {}).get("allocatable", {})
    for name, amount in pod_requests(pod, lambda name: "/" not in name).items():
        if is_quantity(has.get(name)) and amount > value(has[name]):
            return name, _shown(name, amount), _shown(name, value(has[name]))
    return None


def _shown(name: str, amount: Fraction) -> str:
    return f"{float(amount):g}" if name == "cpu" else f"{float(amount) / 2**30:.1f}Gi"


def describe_nodes(pod: Object) -> str:
    """Describes the pool and labels that a pod requires, such as `of pool gpu4082 with zone=1`."""
    wanted = _requirements(pod)
    pools = [wish.removeprefix(_OF_POOL) for wish in wanted if wish.startswith(_OF_POOL)]
    labels = [wish for wish in wanted if not wish.startswith(_OF_POOL)]
    parts = (f"of pool {' and '.join(pools)}" if pools else "", f"with {' and '.join(labels)}" if labels else "")
    return joined(*parts, by=" ")


def is_new(node: Object) -> bool:
    created = node["metadata"].get("creationTimestamp")
    return bool(created) and not is_past(later(created, _JOINING_S))


def joining(node: Object) -> Obstacle:
    look = f"kubectl describe node {node['metadata']['name']}    # wait a minute or two"
    return Obstacle("not ready yet (it has just joined the cluster)", look, passing=True)


def required_labels(pod: Object) -> list[str]:
    keys = [*(pod["spec"].get("nodeSelector") or {}), *(each["key"] for term in _terms(pod) for each in term)]
    return list(dict.fromkeys(keys))


def required_pools(pod: Object) -> set[str]:
    """Returns the names of the pools that the pod requires; empty if it may use any pool."""
    named = [wish.removeprefix(_OF_POOL) for wish in _requirements(pod) if wish.startswith(_OF_POOL)]
    return {name for names in named for name in names.split(" or ")}


def format_taint(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def is_of_program(taint: Object) -> bool:
    """Returns whether this program sets the taint on pools by default."""
    return format_taint(taint) in (GPU_TAINT, SPOT_TAINT, SYSTEM_TAINT)


def _terms(pod: Object) -> list[list[Object]]:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms", [])
    return [[*term.get("matchExpressions", []), *term.get("matchFields", [])] for term in terms]


def _requirements(pod: Object) -> list[str]:
    selected = [f"{key}={value}" for key, value in (pod["spec"].get("nodeSelector") or {}).items()]
    return [*selected, *(_requirement(entry) for term in _terms(pod) for entry in term)]


def _requirement(entry: Object) -> str:
    values = " or ".join(entry.get("values", []))
    return f"{entry['key']}={values}" if entry["operator"] == "In" else f"{entry['key']} {entry['operator']} {values}"
