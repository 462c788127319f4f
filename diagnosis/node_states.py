"""Reports states of nodes: removals and what to do (config/data/node_states.yaml), failed checks, and conditions that
the node-problem-detectors of this program and of AKS set.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from config.data import data
from config.data.scheduling import AUTOPILOT_LABEL, BAD_NODE, CONDITION_PREFIX, HEALTH_TAINT
from diagnosis.cluster import NODE, Cluster
from diagnosis.finding import Obstacle, joined, one_line
from k8s.objects import Object, has_ended

Entry = Mapping[str, Any]
_OF_PERSONS = re.compile(
    r"(?i)(kubectl|oc$|k9s|(open)?lens|freelens|headlamp|node-fetch|axios|mozilla|python|openapi-generator|curl|okhttp)"
)
"""Prefixes of field managers that people use: tools, browsers, and libraries with their default names."""
_UNKNOWN = "an unknown client"
_FINE = re.compile(r"(?<!Not)(Healthy|Ready|OK|Ok|Succeeded)$")
"""Suffix of conditions that are True if there is no problem."""
_VERDICT = f"{HEALTH_TAINT}-verdict"
_UNLABEL = f"kubectl label node {{nodes}} {BAD_NODE.partition('=')[0]}-    # once their GPUs work again"
CHECK_AGAIN = "check it: pulumi up -s <stack> --replace '**:Job::health-check*' (docs/health-check.md)"
_LABELS = {BAD_NODE: _UNLABEL, f"{AUTOPILOT_LABEL}=EVICT": "kubectl describe nodes {nodes}"}
"""Labels that make AppWrapper move jobs off a node, each with the command to run."""
_UNFIT = re.compile(
    rf"{AUTOPILOT_LABEL}=(?!PASS$|EVICT$)|nvidia\.com/(mig\.config\.state=(?!success$|failed$)|gpu\.deploy\..+=paused)"
)
"""Labels of cordoned nodes that must not be used. Autopilot, NVIDIA/mig-parted and k8s-driver-manager set them."""


@dataclass(frozen=True)
class NodeState:
    """A node state that a controller set."""

    entry: Entry
    mark: str
    since: str = ""

    def obstacle(self, node: Object) -> Obstacle:
        do = self.entry["do"].replace("{node}", node["metadata"]["name"])
        what, by = f"{self.entry['who']} ({self.mark})", writers(node, "f:unschedulable") or [_UNKNOWN]
        people = [who for who in by if who == _UNKNOWN or is_of_person(who)]
        if self.entry.get("stays") and node["spec"].get("unschedulable") and people:
            what, do = f"{what}, and cordoned by {people[0]}", f"{do}; the cordon stays: ask the user who set it"
        return Obstacle(what, do, self.since)


@functools.cache
def _known() -> Mapping[str, Mapping[str, Mapping[str, Entry]]]:
    found: dict[str, dict[str, dict[str, Entry]]] = data.read("node_states.yaml")
    return found


def _entry(kind: str, name: str, groups: Iterable[str] = ()) -> Entry | None:
    entries = [item for group in groups or _known()[kind] for item in _known()[kind][group].items()]
    return next((entry for pattern, entry in entries if fnmatchcase(name, pattern)), None)


def of_taints(taints: Iterable[Object], *groups: str) -> NodeState | None:
    found = [
        NodeState(entry, f"taint {taint['key']}", taint.get("timeAdded", ""))
        for taint in taints
        if (entry := _entry("taints", taint["key"], groups))
    ]
    order = [*_known()["taints"]["leaving"].values()]
    return min(found, key=lambda each: order.index(each.entry) if each.entry in order else len(order), default=None)


def leaving(node: Object) -> NodeState | None:
    """Returns the state for which a controller removes, reboots or repairs the node, or None."""
    metadata, conditions = node["metadata"], node["status"].get("conditions", [])
    if tainted := of_taints(node["spec"].get("taints", []), "leaving"):
        return tainted
    fields = (("fields", key) for key in metadata)
    labels = (("labels", f"{key}={value}") for key, value in metadata.get("labels", {}).items())
    annotations = (("annotations", key) for key in metadata.get("annotations", {}))
    for kind, name in (*fields, *labels, *annotations):
        if entry := _entry(kind, name):
            return NodeState(entry, f"{kind[:-1]} {name}")
    for each in conditions:
        if each["status"] == "True" and (entry := _entry("conditions", each["type"], ["leaving"])):
            mark = one_line(joined(f"condition {each['type']}", each.get("message")))
            return NodeState(entry, mark, each.get("lastTransitionTime", ""))
    return None


def is_problem(node: Object, condition: Object) -> bool:
    """Returns whether a condition is a problem. On a cordoned node, conditions of unknown types count too."""
    kind, status = condition["type"], condition["status"]
    if like_ours(kind) is not None or CONDITION_PREFIX in kind:
        return bool(status == "True")
    if kind == "Ready" or _entry("conditions", kind, ["leaving"]) or not node["spec"].get("unschedulable"):
        return False
    return bool(status == ("False" if _FINE.search(kind) else "True"))


def like_ours(condition: str) -> str | None:
    """Returns this program's name for the problem that a condition of another detector reports.

    Returns an empty string if this program has no condition for it, and None if the given condition is unknown.
    """
    entry = _entry("conditions", condition, ["problems"])
    return None if entry is None else str(entry.get("like", ""))


def writers(node: Object, field: str) -> list[str]:
    entries = node["metadata"].get("managedFields", [])
    found = [each.get("manager", "") for each in entries if field in each.get("fieldsV1", {}).get("f:spec", {})]
    return list(filter(None, found))


def manager(node: Object, field: str) -> str:
    """Returns the client that wrote a field, or an empty string. Of several, prefers a controller, which keeps writing
    it.
    """
    return min(writers(node, field), key=is_of_person, default="")


def is_of_person(who: str) -> bool:
    return bool(_OF_PERSONS.match(who))


def removal(node: Object) -> list[Obstacle]:
    state = leaving(node)
    return [state.obstacle(node)] if state and not state.entry.get("routine", False) else []


def unhealthy(node: Object) -> Iterator[Obstacle]:
    yield from (Obstacle(problem, "kubectl describe nodes {nodes}") for problem in problems(node))
    cordoned, verdict = node["spec"].get("unschedulable"), node["metadata"].get("annotations", {}).get(_VERDICT, "")
    tainted = any(taint["key"] == HEALTH_TAINT for taint in node["spec"].get("taints", []))
    if tainted or (cordoned and verdict.removeprefix("VERDICT: ").startswith("FAIL")):
        yield failed_check(node)
        return
    labels = [f"{key}={value}" for key, value in node["metadata"].get("labels", {}).items()]
    yield from (
        Obstacle(f"label {label}: AppWrapper moves its jobs away", _LABELS[label])
        for label in labels
        if label in _LABELS
    )
    if unfit := ", ".join(label for label in labels if cordoned and _UNFIT.match(label)):
        yield Obstacle(f"must not be used: label {unfit}", "kubectl describe nodes {nodes}")


def failed_check(node: Object) -> Obstacle:
    found = node["metadata"].get("annotations", {}).get(_VERDICT, "for an unknown reason")
    steps = f"repair the node, add it to workloadOptions.health-check.nodeNames, then {CHECK_AGAIN}"
    return Obstacle(f"has failed its check ({one_line(found)})", f"kubectl describe nodes {{nodes}}    # {steps}")


def remarks_on_nodes(cluster: Cluster, pods: Iterable[Object]) -> Iterator[str]:
    names = {pod["spec"].get("nodeName") for pod in pods if not has_ended(pod)}
    for node in cluster.all(NODE):
        if node["metadata"]["name"] in names:
            yield from (f"its node {node['metadata']['name']} has {problem}" for problem in problems(node))


def problems(node: Object) -> list[str]:
    bad = [each for each in node["status"].get("conditions", []) if is_problem(node, each)]
    ours = {each["type"].removeprefix(CONDITION_PREFIX): each for each in bad if CONDITION_PREFIX in each["type"]}
    others = {
        each["type"]: each
        for each in bad
        if CONDITION_PREFIX not in each["type"] and like_ours(each["type"]) not in ours
    }
    found = {f"{name}{'' if each['status'] == 'True' else '=False'}": each for name, each in {**others, **ours}.items()}
    return [f"{name} ({one_line(each.get('message', ''))})" for name, each in found.items()]
