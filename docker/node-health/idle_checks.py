#!/usr/bin/env python3
"""Starts checks of a few idle GPU nodes: a CronJob runs it, so that each node is checked once a day.

A check is a pod of the lowest priority, which any job drives out. Nodes are taken in the order in which they were
checked last, in each round no more than that all of them have their turn within a day. While a job's pod waits for
GPUs, no check begins. A node that does not offer all of its GPUs is left out: its check could not begin. Uses the
Kubernetes API with the pod's service account, which needs `list` of nodes and pods, and `create` of pods in its own
namespace.
"""

from __future__ import annotations

import copy
import json
import math
import os
import sys
import urllib.error
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api import CONFLICT, GONE, Object, call

CHECKED = "aznhc-checked"
"""Annotation: when a node was checked last, all that there is to check."""
GPU = "nvidia.com/gpu"
HOSTNAME, POOL = "kubernetes.io/hostname", "kubernetes.azure.com/agentpool"
DAY = timedelta(days=1)
PREFIX = "idle-check-"
"""Of the names of checks, behind which is their node's."""
_ENDED = ("Succeeded", "Failed")


def chosen(
    nodes: Sequence[Object], pods: Sequence[Object], now: datetime, every: timedelta, gpus: Mapping[str, int]
) -> list[str]:
    """Names of the nodes to check in this round; `every` is between two of these, `gpus` are a node's, by its pool."""
    takers = [pod for pod in pods if _takes_gpus(pod)]
    busy = {pod["spec"].get("nodeName") or _meant_for(pod) for pod in takers}
    if "" in busy:
        print("a pod waits for GPUs: no check begins", flush=True)
        return []
    idle = [node for node in nodes if node["metadata"]["name"] not in busy and now - _last(node) >= DAY]
    due = [node for node in idle if _ready(node, gpus[node["metadata"]["labels"][POOL]])]
    share = math.ceil(len(nodes) * every / DAY)
    return [node["metadata"]["name"] for node in sorted(due, key=_last)[:share]]


def _meant_for(pod: Object) -> str:
    """The node of a check that waits for it; empty for all other pods."""
    name = pod["metadata"]["name"]
    return str(pod["spec"].get("nodeSelector", {}).get(HOSTNAME, "")) if name.startswith(PREFIX) else ""


def _takes_gpus(pod: Object) -> bool:
    if pod.get("status", {}).get("phase") in _ENDED:
        return False
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return any(name.startswith(GPU) for each in containers for name in each.get("resources", {}).get("limits", {}))


def _ready(node: Object, gpus: int) -> bool:
    """With all of its GPUs there, too. What is tainted may be well again."""
    conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", [])}
    offers = int(node.get("status", {}).get("allocatable", {}).get(GPU, 0))
    if offers < gpus:
        print(f"node {node['metadata']['name']} offers {offers} of its {gpus} GPUs: it is not checked", flush=True)
    return conditions.get("Ready") == "True" and offers >= gpus and not node["spec"].get("unschedulable")


def _last(node: Object) -> datetime:
    text = node["metadata"].get("annotations", {}).get(CHECKED, "")
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def check(template: Object, node: str, owner: Object) -> Object:
    """The pod that checks the node. It goes with the Job that started it."""
    pod = copy.deepcopy(template)
    metadata = pod.setdefault("metadata", {})
    metadata["name"] = f"{PREFIX}{node}"
    metadata["ownerReferences"] = [owner]
    pod["spec"]["nodeSelector"] = {**pod["spec"].get("nodeSelector", {}), HOSTNAME: node}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def main() -> int:
    """One round. 1 where a check could not be made; one of that name may still be there, or its node have gone."""
    namespace = os.environ["NAMESPACE"]
    templates = {file.stem: json.loads(file.read_text()) for file in Path(os.environ["TEMPLATES"]).glob("*.json")}
    nodes = _nodes(templates)
    every = timedelta(minutes=int(os.environ["MINUTES"]))
    gpus = {pool: _gpus(template) for pool, template in templates.items()}
    names = chosen(nodes, call("GET", "/api/v1/pods")["items"], datetime.now(UTC), every, gpus)
    pools = {node["metadata"]["name"]: node["metadata"]["labels"][POOL] for node in nodes}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": os.environ["JOB"], "uid": os.environ["JOB_UID"]}
    failed = False
    for name in names:
        try:
            call("POST", f"/api/v1/namespaces/{namespace}/pods", check(templates[pools[name]], name, owner))
        except urllib.error.HTTPError as error:
            if error.code not in (CONFLICT, GONE):
                failed = True
                print(f"ERROR: node {name}: {error.code} {error.read().decode(errors='replace')}", file=sys.stderr)
        else:
            print(f"node {name} is idle, and checked", flush=True)
    return int(failed)


def _gpus(template: Object) -> int:
    (container,) = template["spec"]["containers"]
    return int(container["resources"]["limits"][GPU])


def _nodes(pools: Iterable[str]) -> list[Object]:
    selector = urllib.parse.quote(f"{POOL} in ({','.join(sorted(pools))})")
    found: list[Object] = call("GET", f"/api/v1/nodes?labelSelector={selector}")["items"]
    return found


if __name__ == "__main__":
    sys.exit(main())
