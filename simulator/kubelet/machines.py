"""Updates the file systems of nodes after changes of hardware, reboots, and installations of drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from k8s.objects import Object, is_ready
from simulator.kubelet import folders
from simulator.kubelet.pods import PodCatalogue
from simulator.sandbox import machine
from simulator.world.hardware import NodeHardware


class Machines:
    """The file systems of all nodes."""

    def __init__(self, folder: Path, hardware: Callable[[Object], NodeHardware], catalogue: PodCatalogue) -> None:
        """`folder` is the cluster's folder. `catalogue` names the files that a Ready pod creates on its node."""
        self._folder, self._hardware, self._catalogue = folder, hardware, catalogue
        self._written: dict[Path, NodeHardware] = {}
        self._known: dict[str, Sequence[str]] = {}
        self._left: set[Path] = set()

    def sync(self, nodes: Mapping[str, Object], pods: Sequence[Object]) -> set[str]:
        """Writes the files of all nodes, with effects of faults. Returns nodes that rebooted since the last call."""
        booted = set()
        roots = {name: folders.of_machine(self._folder, node) for name, node in nodes.items()}
        for name, root in roots.items():
            before, now = self._written.get(root), self._hardware(nodes[name])
            if before != now or not root.exists():
                machine.write(root, now)
            if before is None:  # files of an earlier run
                for path in self._catalogue.all_left:
                    (root / path).unlink(missing_ok=True)
            elif before.booted != now.booted:
                booted.add(name)
            self._written[root] = now
        self._written = {root: self._written[root] for root in roots.values()}
        self._leave(pods, roots)
        return booted

    def _leave(self, pods: Sequence[Object], roots: Mapping[str, Path]) -> None:
        """Creates or deletes the empty files by which pods detect a driver on their node."""
        self._known = {pod["metadata"]["uid"]: self._of(pod) for pod in pods}
        left = {
            roots[pod["spec"]["nodeName"]] / path
            for pod in pods
            if pod["spec"]["nodeName"] in roots and is_ready(pod)
            for path in self._of(pod)
        }
        for file in self._left - left:
            file.unlink(missing_ok=True)
        for file in left:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        self._left = left

    def _of(self, pod: Object) -> Sequence[str]:
        uid = pod["metadata"]["uid"]
        return self._known[uid] if uid in self._known else self._catalogue.leaves(pod)
