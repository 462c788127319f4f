"""Folders of this machine for a cluster's pods and nodes."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from k8s.objects import Object

_FOLDERS = ("nodes/*/*", "pods/*", "pod-logs/*")


def of_pod(cluster: Path, pod: Object) -> Path:
    return cluster / "pods" / str(pod["metadata"]["uid"])


def logs_of(cluster: Path, pod: Object) -> Path:
    metadata = pod["metadata"]
    return cluster / "pod-logs" / f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"


def of_machine(cluster: Path, node: Object) -> Path:
    """Returns the folder of a node's file system. A new node with an old name gets a new, empty folder."""
    metadata = node["metadata"]
    return Path(cluster, "nodes", metadata["name"], metadata.get("uid", "gone"))


class Sweep:
    """Removes the folders of pods and nodes that no longer exist."""

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster
        self._there: set[str] = set()
        self._leftovers = True
        """Whether folders may remain from an earlier run, or from a pod that wrote during its removal."""

    def __call__(self, pods: Collection[Object], nodes: Collection[Object]) -> None:
        """Removes the folders. Searches the disk only if a pod or node was deleted, because thousands may exist."""
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
