"""What drivers' pods leave on their nodes while they are Ready, by which others know that they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from diagnosis.cluster import Object, is_ready


class LeftFiles:
    """Empty files in the nodes' file systems."""

    def __init__(self, leaves: Callable[[Object], Sequence[str]]) -> None:
        """`leaves` says what files a pod leaves, by their paths on the node."""
        self._leaves = leaves
        self._known: dict[str, Sequence[str]] = {}
        """By a pod's uid."""
        self._there: set[Path] = set()

    def sync(self, pods: Sequence[Object], roots: Mapping[str, Path]) -> None:
        """Called with all bound pods, and the folder of each node."""
        self._known = {uid: self._of(pod) for pod in pods for uid in [pod["metadata"]["uid"]]}
        wanted = {
            roots[pod["spec"]["nodeName"]] / path
            for pod in pods
            if pod["spec"]["nodeName"] in roots and is_ready(pod)
            for path in self._known[pod["metadata"]["uid"]]
        }
        for file in self._there - wanted:
            file.unlink(missing_ok=True)
        for file in wanted:
            if file not in self._there or not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        self._there = wanted

    def _of(self, pod: Object) -> Sequence[str]:
        uid = pod["metadata"]["uid"]
        return self._known[uid] if uid in self._known else self._leaves(pod)
