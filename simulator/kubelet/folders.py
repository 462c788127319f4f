"""Where a cluster's pods and machines keep their files on this machine, and how these go."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from k8s.objects import Object

_FOLDERS = ("nodes/*/*", "pods/*", "pod-logs/*")


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


class Sweep:
    """Removes what belonged to pods and machines that are gone, whenever they went."""

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster
        self._there: set[str] = set()
        self._leftovers = True
        """Of an earlier life, or of a pod that still wrote when it was removed."""

    def __call__(self, pods: Collection[Object], nodes: Collection[Object]) -> None:
        """Looks at the disk only where one of them is gone since the last time: a batch leaves thousands of pods."""
        there = {each["metadata"].get("uid", "") for each in (*pods, *nodes)}
        if self._leftovers or self._there - there:
            kept = {of_machine(self._cluster, node) for node in nodes}
            for pod in pods:
                kept |= {of_pod(self._cluster, pod), logs_of(self._cluster, pod)}
            gone = [folder for pattern in _FOLDERS for folder in self._cluster.glob(pattern) if folder not in kept]
            for folder in gone:
                shutil.rmtree(folder, ignore_errors=True)
            self._leftovers = bool(gone)
        self._there = there
