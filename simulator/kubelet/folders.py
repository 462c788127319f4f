"""Where a cluster's pods and machines keep their files on this machine, and how these go."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from diagnosis.cluster import Object


def of_pod(cluster: Path, pod: Object) -> Path:
    """Its volumes, and the run folders of its sandboxes."""
    return cluster / "pods" / str(pod["metadata"]["uid"])


def logs_of(cluster: Path, pod: Object) -> Path:
    """One folder for each container."""
    metadata = pod["metadata"]
    return cluster / "pod-logs" / f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"


def of_machine(cluster: Path, node: Object) -> Path:
    """The file system of a node. It is the machine's: another of the same name begins with an empty one."""
    metadata = node["metadata"]
    return Path(cluster, "nodes", metadata["name"], metadata.get("uid", "gone"))


def sweep(cluster: Path, pods: Iterable[Object], nodes: Iterable[Object]) -> None:
    """Removes what belonged to pods and machines other than these, whenever they went."""
    kept = {of_machine(cluster, node) for node in nodes}
    for pod in pods:
        kept |= {of_pod(cluster, pod), logs_of(cluster, pod)}
    for pattern in ("nodes/*/*", "pods/*", "pod-logs/*"):
        for folder in cluster.glob(pattern):
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)  # what a pod still writes goes the next time
