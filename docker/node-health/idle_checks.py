#!/usr/bin/env python3
"""Starts checks of a few idle GPU nodes. A CronJob runs it.

A check is a pod with the lowest priority, which any job preempts. Each round checks the nodes with the oldest checks,
and enough nodes to check all within a day. While a job's pod waits for GPUs, no check starts. If a node offers fewer
devices than it has, the check requests the offered devices, and reports the missing devices. If a node offers no device
of a kind, it is not checked.

For pods with `preemptionPolicy: Never`, such as pods of teams, schedulers preempt no pods. If such a pod waits for
GPUs, the round deletes its checks. So it lasts until the checks end or the next round is near.

The pod's service account needs `list` of nodes and pods, and `create` and `delete` of pods in its own namespace.
"""

from __future__ import annotations

import copy
import json
import math
import os
import sys
import time
import urllib.error
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api import CONFLICT, GONE, Object, call

CHECKED = "aznhc-checked"
"""Annotation with the time of a node's last complete check."""
GPU = "nvidia.com/gpu"
HOSTNAME, POOL = "kubernetes.io/hostname", "kubernetes.azure.com/agentpool"
DAY = timedelta(days=1)
PREFIX = "idle-check-"
"""The prefix of a check's name. The node's name follows."""
_ENDED = ("Succeeded", "Failed")
_PENDING = "/api/v1/pods?fieldSelector=status.phase%3DPending"
_LOOKS_S, _BEFORE_NEXT_S = 5, 30
"""Seconds between two polls of waiting pods; seconds before the next round at which polling ends."""


def chosen(
    nodes: Sequence[Object],
    pods: Sequence[Object],
    now: datetime,
    every: timedelta,
    devices: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Returns the nodes to check in this round. `every` is the time between rounds. `devices` are per node, by pool."""
    busy = {_node_of(pod) for pod in pods if _takes_gpus(pod)}
    if "" in busy:
        print("a pod waits for GPUs: no check starts", flush=True)
        return []
    idle = [node for node in nodes if node["metadata"]["name"] not in busy and now - _last(node) >= DAY]
    due = [node for node in idle if _ready(node, devices[node["metadata"]["labels"][POOL]])]
    share = math.ceil(len(nodes) * every / DAY)
    return [node["metadata"]["name"] for node in sorted(due, key=_last)[:share]]


def _node_of(pod: Object) -> str:
    """Returns the pod's node, or the node that a pending check waits for. Returns "" for other pending pods."""
    own = pod["spec"].get("nodeSelector", {}).get(HOSTNAME, "") if pod["metadata"]["name"].startswith(PREFIX) else ""
    return str(pod["spec"].get("nodeName") or own)


def _takes_gpus(pod: Object) -> bool:
    if pod.get("status", {}).get("phase") in _ENDED:
        return False
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    limits = [item for each in containers for item in each.get("resources", {}).get("limits", {}).items()]
    return any(name.startswith(GPU) and str(count) != "0" for name, count in limits)  # Autopilot's pods request 0


def _ready(node: Object, devices: Mapping[str, str]) -> bool:
    """Returns whether a check can start on the node. Tainted nodes are checked too, because they may be repaired."""
    conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", [])}
    none = [name for name, count in offered(node, devices).items() if count < 1]
    if none:
        print(f"node {node['metadata']['name']} offers no {', '.join(none)}: not checked", flush=True)
    return conditions.get("Ready") == "True" and not none and not node["spec"].get("unschedulable")


def offered(node: Object, devices: Mapping[str, str]) -> dict[str, int]:
    """Returns how many of the wanted `devices` a node offers, by resource."""
    allocatable = node.get("status", {}).get("allocatable", {})
    counts = {name: allocatable.get(name, "0") for name in devices}
    return {name: min(int(text), int(devices[name])) if text.isdecimal() else 0 for name, text in counts.items()}


def _last(node: Object) -> datetime:
    text = node["metadata"].get("annotations", {}).get(CHECKED, "")
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def check(template: Object, node: Object, owner: Object) -> Object:
    """Returns a pod that checks the node with all offered devices. The pod is deleted with the Job `owner`."""
    pod = copy.deepcopy(template)
    name = node["metadata"]["name"]
    counts = {device: str(count) for device, count in offered(node, _devices(template)).items()}
    for kind in ("requests", "limits"):
        pod["spec"]["containers"][0]["resources"][kind] |= counts
    metadata = pod.setdefault("metadata", {})
    metadata["name"] = f"{PREFIX}{name}"
    metadata["ownerReferences"] = [owner]
    pod["spec"]["nodeSelector"] = {**pod["spec"].get("nodeSelector", {}), HOSTNAME: name}
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def cannot_evict(pod: Object) -> bool:
    """Returns whether the pod waits for GPUs, and schedulers preempt no other pods for it."""
    return pod["spec"].get("preemptionPolicy") == "Never" and _takes_gpus(pod) and not _node_of(pod)


def give_way(checks: str, until: float) -> None:
    """Deletes all checks (API path `checks`) when a pod that cannot evict them waits for GPUs.

    Returns when no check runs any more, or at the time `until` of the monotonic clock.
    """
    own = f"{checks}?labelSelector={urllib.parse.quote(os.environ['LABEL'])}"
    while time.monotonic() < until:
        try:
            left = [pod for pod in call("GET", own)["items"] if pod.get("status", {}).get("phase") not in _ENDED]
            if not left:
                return
            waits = any(cannot_evict(pod) for pod in call("GET", _PENDING)["items"])
            for name in (pod["metadata"]["name"] for pod in left if waits):
                print(f"deleting {name}: a pod waits for GPUs", flush=True)
                call("DELETE", f"{checks}/{name}")
        except OSError as error:
            print(f"ERROR: {error}; retrying", file=sys.stderr)
        time.sleep(_LOOKS_S)


def main() -> int:
    """Runs one round. Returns 1 if the API server rejected a check, unless the check exists or its node was deleted."""
    begun, checks = time.monotonic(), f"/api/v1/namespaces/{os.environ['NAMESPACE']}/pods"
    templates = {file.stem: json.loads(file.read_text()) for file in Path(os.environ["TEMPLATES"]).glob("*.json")}
    nodes = {node["metadata"]["name"]: node for node in _nodes(templates)}
    every = timedelta(minutes=int(os.environ["MINUTES"]))
    devices = {pool: _devices(template) for pool, template in templates.items()}
    names = chosen([*nodes.values()], call("GET", "/api/v1/pods")["items"], datetime.now(UTC), every, devices)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": os.environ["JOB"], "uid": os.environ["JOB_UID"]}
    failed = False
    for name in names:
        pod = check(templates[nodes[name]["metadata"]["labels"][POOL]], nodes[name], owner)
        try:
            call("POST", checks, pod)
        except urllib.error.HTTPError as error:
            if error.code not in (CONFLICT, GONE):
                failed = True
                print(f"ERROR: node {name}: {error.code} {error.read().decode(errors='replace')}", file=sys.stderr)
        else:
            print(f"node {name} is idle: started its check", flush=True)
    give_way(checks, begun + every.total_seconds() - _BEFORE_NEXT_S)
    return int(failed)


def _devices(template: Object) -> dict[str, str]:
    """Returns the devices that a check requests: the resources with a domain in their name."""
    (container,) = template["spec"]["containers"]
    return {name: count for name, count in container["resources"]["limits"].items() if "/" in name}


def _nodes(pools: Iterable[str]) -> list[Object]:
    selector = urllib.parse.quote(f"{POOL} in ({','.join(sorted(pools))})")
    found: list[Object] = call("GET", f"/api/v1/nodes?labelSelector={selector}")["items"]
    return found


if __name__ == "__main__":
    sys.exit(main())
