"""Problems of nodes that our node-problem-detector tells, as conditions of theirs, and that a check has found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from config.facts.scheduling import CONDITION_PREFIX, HEALTH_TAINT
from diagnosis.cluster import NODE, Cluster, Object, has_ended
from diagnosis.finding import Finding, Obstacle, one_line, together


def sick_nodes(cluster: Cluster) -> list[Finding]:
    """Every one of the cluster."""
    return together((node["metadata"]["name"], obstacle) for node in cluster.all(NODE) for obstacle in _obstacles(node))


def _obstacles(node: Object) -> Iterator[Obstacle]:
    yield from (Obstacle(problem, "kubectl describe nodes {nodes}") for problem in problems(node))
    if any(taint["key"] == HEALTH_TAINT for taint in node["spec"].get("taints") or []):
        yield failed_check(node)


def failed_check(node: Object) -> Obstacle:
    """Of a node with the taint of a check: what that has found, and how the taint goes."""
    found = (node["metadata"].get("annotations") or {}).get(f"{HEALTH_TAINT}-verdict", "nobody says why")
    mended = "mend it, then have it checked again: workloadOptions.health-check.nodeNames (docs/health-check.md)"
    return Obstacle(f"has failed its check ({one_line(found)})", mended)


def remarks_on_nodes(cluster: Cluster, pods: Iterable[Object]) -> Iterator[str]:
    """What is said of nodes on which a workload has pods."""
    names = {pod["spec"].get("nodeName") for pod in pods if not has_ended(pod)}
    for node in cluster.all(NODE):
        if node["metadata"]["name"] in names:
            yield from (f"its node {node['metadata']['name']} has {problem}" for problem in problems(node))


def problems(node: Object) -> list[str]:
    """Those that are there; of what nobody knows nothing is told."""
    return [
        f"{each['type'].removeprefix(CONDITION_PREFIX)} ({one_line(each.get('message', ''))})"
        for each in node.get("status", {}).get("conditions") or []
        if each["type"].startswith(CONDITION_PREFIX) and each["status"] == "True"
    ]
