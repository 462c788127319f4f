"""Problems of nodes: conditions of node-problem-detectors, ours and AKS's, and what a check has found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from config.facts.scheduling import AUTOPILOT_LABEL, BAD_NODE, CONDITION_PREFIX, HEALTH_TAINT
from diagnosis.cluster import NODE, Cluster
from diagnosis.finding import Obstacle, one_line
from diagnosis.node_states import is_problem, like_ours
from k8s.objects import Object, has_ended

_VERDICT = f"{HEALTH_TAINT}-verdict"
_UNLABEL = f"kubectl label node {{nodes}} {BAD_NODE.partition('=')[0]}-    # once their GPUs are well again"
CHECK_AGAIN = "check it: pulumi up -s <stack> --replace '**:Job::health-check*' (docs/health-check.md)"
_LABELS = {BAD_NODE: _UNLABEL, f"{AUTOPILOT_LABEL}=EVICT": "kubectl describe nodes {nodes}"}
"""Labels for which AppWrapper takes jobs away from a node, and what to do."""
_UNFIT = re.compile(
    rf"{AUTOPILOT_LABEL}=(?!PASS$|EVICT$)|nvidia\.com/(mig\.config\.state=(?!success$|failed$)|gpu\.deploy\..+=paused)"
)
"""Labels of a cordoned node for which it is not to be used: of a check, of NVIDIA/mig-parted and k8s-driver-manager."""


def sick(node: Object) -> Iterator[Obstacle]:
    """Yields each such problem of a node."""
    yield from (Obstacle(problem, "kubectl describe nodes {nodes}") for problem in problems(node))
    cordoned, verdict = node["spec"].get("unschedulable"), node["metadata"].get("annotations", {}).get(_VERDICT, "")
    tainted = any(taint["key"] == HEALTH_TAINT for taint in node["spec"].get("taints", []))
    if tainted or (cordoned and verdict.removeprefix("VERDICT: ").startswith("FAIL")):
        yield failed_check(node)
        return
    labels = [f"{key}={value}" for key, value in node["metadata"].get("labels", {}).items()]
    yield from (
        Obstacle(f"label {label}: AppWrapper takes its jobs away", _LABELS[label])
        for label in labels
        if label in _LABELS
    )
    if unfit := ", ".join(label for label in labels if cordoned and _UNFIT.match(label)):
        yield Obstacle(f"not to be used: label {unfit}", "kubectl describe nodes {nodes}")


def failed_check(node: Object) -> Obstacle:
    """Of a node with the taint of a check: what that has found, and how the taint goes."""
    found = node["metadata"].get("annotations", {}).get(_VERDICT, "nobody says why")
    mended = "mend it, then name it in workloadOptions.health-check.nodeNames"
    return Obstacle(f"has failed its check ({one_line(found)})", f"{mended}    # {CHECK_AGAIN}")


def remarks_on_nodes(cluster: Cluster, pods: Iterable[Object]) -> Iterator[str]:
    """What is said of nodes on which a workload has pods."""
    names = {pod["spec"].get("nodeName") for pod in pods if not has_ended(pod)}
    for node in cluster.all(NODE):
        if node["metadata"]["name"] in names:
            yield from (f"its node {node['metadata']['name']} has {problem}" for problem in problems(node))


def problems(node: Object) -> list[str]:
    """Those that are there, ours before AKS's and Kubernetes' own, and each once."""
    bad = [each for each in node["status"].get("conditions", []) if is_problem(node, each)]
    ours = {each["type"].removeprefix(CONDITION_PREFIX): each for each in bad if CONDITION_PREFIX in each["type"]}
    others = {
        each["type"]: each
        for each in bad
        if CONDITION_PREFIX not in each["type"] and like_ours(each["type"]) not in ours
    }
    found = {f"{name}{'' if each['status'] == 'True' else '=False'}": each for name, each in {**others, **ours}.items()}
    return [f"{name} ({one_line(each.get('message', ''))})" for name, each in found.items()]
