"""Records on which nodes jobs' pods run, because Volcano deletes workers when a job completes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from k8s.objects import Object, has_ended
from simulator.host import files
from simulator.kubelet.status import PARTLY_STUBBED, STUBBED

_KEPT = 500
_JOBS = ("Job", "PyTorchJob", "RayCluster")


class Placements:
    """A file with the latest pods of jobs: namespace, name, job, node, last phase, and why no process runs."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._pods: dict[str, Object] = json.loads(file.read_text()) if file.exists() else {}
        self._over: set[str] = set()
        """Uids of ended pods, which are not recorded again. Batch jobs leave thousands of them."""

    def record(self, pods: Iterable[Object]) -> None:
        before = dict(self._pods)
        by_uid = {str(pod["metadata"]["uid"]): pod for pod in pods}
        self._over &= by_uid.keys()
        for uid, pod in by_uid.items():
            if uid in self._over:
                continue
            owner = next((o for o in pod["metadata"].get("ownerReferences", []) if o["kind"] in _JOBS), None)
            if owner:
                self._pods[uid] = {
                    "namespace": pod["metadata"]["namespace"],
                    "pod": pod["metadata"]["name"],
                    "job": owner["name"],
                    "job_uid": owner["uid"],
                    "node": pod["spec"]["nodeName"],
                    "phase": pod.get("status", {}).get("phase", "Pending"),
                    "why_stubbed": why_stubbed(pod),
                }
            self._over |= {uid} if has_ended(pod) else set()
        if self._pods != before:
            self._pods = dict(list(self._pods.items())[-_KEPT:])
            files.replace(self._file, json.dumps(self._pods))


def why_stubbed(pod: Object) -> str:
    """Returns why some or all containers of a pod run no process, or an empty string."""
    status = pod.get("status", {})
    return f"{status['reason']}: {status['message']}" if status.get("reason") in (STUBBED, PARTLY_STUBBED) else ""


def load(file: Path) -> list[Object]:
    return list(json.loads(file.read_text()).values()) if file.exists() else []
