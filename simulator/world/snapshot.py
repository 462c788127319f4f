"""Writes `world.json`, from which sandboxed commands read nodes and pods (in /run/simulator)."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from k8s.objects import Object, holds
from k8s.quantities import value
from simulator.host import files
from simulator.world.hardware import NodeHardware

MAX_STATE_BYTES = 2**20
_REPLICA = "training.kubeflow.org/replica-type"
"""The training operator's label. The operator creates a headless Service with each pod's name."""
_RAY = "ray.io/"
"""The prefix of KubeRay's labels. A cluster's head has a Service with the cluster's name and a suffix."""
_RAY_SUFFIX = "-head-svc"
STANDING = frozenset({"sshd"})
"""States that are valid only while their daemon runs. A daemon locks its state's file until it ends."""
DEFAULT_SHM_BYTES = 64 * 2**20  # the default of container runtimes without a volume at /dev/shm


def snapshot(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    hardware_by_node: Mapping[str, NodeHardware],
    allocations: Mapping[str, Mapping[str, Any]],
    states: Mapping[str, Mapping[str, Any]] | None = None,
) -> Object:
    """Returns the content of `world.json`. Keys of `allocations` and `states` are "namespace/name".

    An allocation lists the pod's devices ({"gpus": [indices], "hcas": [names]}). A state is what simulated daemons in
    the pod have written ({"sshd": {...}}).
    """
    found = states or {}
    return {
        "nodes": {node["metadata"]["name"]: _node(node, hardware_by_node) for node in nodes},
        "pods": {
            pod_key(pod): _pod(pod, allocations.get(pod_key(pod), {}), found.get(pod_key(pod), {})) for pod in pods
        },
    }


def write(world: Object, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / "world.json", json.dumps(world))


def states_of(folder: Path) -> Object:
    """Returns the states in the pod's state folder, by file name: {"sshd": {...}}.

    Ignores symbolic links, large files and incomplete documents, because the sandbox can write anything there.
    """
    found: Object = {}
    for file in sorted(folder.glob("*.json")):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_STATE_BYTES:
                continue
            if file.stem in STANDING and not _is_locked(descriptor):
                continue
            try:
                found[file.stem] = json.loads(stream.read(MAX_STATE_BYTES))
            except ValueError:
                continue
    return found


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def pod_key(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def shm_bytes(pod: Object) -> int:
    """Returns the bytes of /dev/shm: for a memory volume, its limit or a container's; otherwise, 64 MiB."""
    spec = pod["spec"]
    mounted = {mount["name"] for mount in _each(spec, "volumeMounts") if mount["mountPath"].rstrip("/") == "/dev/shm"}
    for volume in spec.get("volumes") or []:
        empty_dir = volume.get("emptyDir")
        if volume["name"] in mounted and empty_dir is not None and empty_dir.get("medium") == "Memory":
            limits = [c.get("resources", {}).get("limits", {}).get("memory") for c in spec["containers"]]
            candidates = [empty_dir.get("sizeLimit"), *limits]
            return next((int(value(size)) for size in candidates if size), 2**40)
    return DEFAULT_SHM_BYTES


def _node(node: Object, hardware_by_node: Mapping[str, NodeHardware]) -> Object:
    metadata = node["metadata"]
    labels = metadata.get("labels", {})
    hardware = hardware_by_node.get(metadata["name"])
    return {
        "sku": labels.get("node.kubernetes.io/instance-type", ""),
        "pool": labels.get("kubernetes.azure.com/agentpool", labels.get("agentpool", "")),
        "ready": holds(node, "Ready") and (hardware is None or hardware.up),
        "cpus": int(value(node.get("status", {}).get("capacity", {}).get("cpu", 0))),
        "gpus": [asdict(gpu) for gpu in hardware.gpus] if hardware else [],
        "hcas": [asdict(hca) for hca in hardware.hcas] if hardware else [],
    }


def _pod(pod: Object, allocation: Mapping[str, Any], state: Mapping[str, Any]) -> Object:
    spec, status = pod["spec"], pod.get("status", {})
    contexts = [container.get("securityContext") or {} for container in spec["containers"]]
    added = {name for context in contexts for name in (context.get("capabilities") or {}).get("add") or []}
    return {
        "uid": pod["metadata"].get("uid", ""),
        "node": spec.get("nodeName", ""),
        "phase": status.get("phase", "Pending"),
        "ready": holds(pod, "Ready"),
        "ip": status.get("podIP", ""),
        "hostname": spec.get("hostname") or pod["metadata"]["name"],
        "subdomain": spec.get("subdomain", ""),
        "services": list(_services(pod["metadata"])),
        "gpus": list(allocation.get("gpus", [])),
        "hcas": list(allocation.get("hcas", [])),
        "capabilities": sorted(added),
        "privileged": any(context.get("privileged") for context in contexts),
        "shm_bytes": shm_bytes(pod),
        "state": dict(state),
    }


def _services(metadata: Object) -> Iterator[str]:
    """Yields the names of the Services that select only this pod."""
    labels = metadata.get("labels", {})
    if _REPLICA in labels:
        yield metadata["name"]
    if labels.get(f"{_RAY}node-type") == "head":
        yield labels.get(f"{_RAY}cluster", "") + _RAY_SUFFIX


def _each(spec: Object, field: str) -> Iterable[Object]:
    for container in spec["containers"]:
        yield from container.get(field) or []
