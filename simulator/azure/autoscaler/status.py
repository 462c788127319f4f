"""The autoscaler's output: a status ConfigMap in kube-system, and events of this ConfigMap, of nodes and of pods.

The status has upstream's format since 1.30 (cluster-autoscaler/clusterstate/api/types.go). Upstream repeats events
every five minutes; the simulator records them once.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Literal

import yaml

from k8s.objects import Object
from simulator.azure.autoscaler.backoff import Refusal
from simulator.azure.autoscaler.groups import Group
from simulator.kube import events
from simulator.kube.client import KubeClient

NAMESPACE, NAME = "kube-system", "cluster-autoscaler-status"
_SOURCE = {"component": "cluster-autoscaler"}


def summary(
    groups: Sequence[Group], refusals: Sequence[Refusal | None], going: Sequence[int], *, healthy: bool
) -> dict[str, Any]:
    """Returns the status without times. `refusals` and `going` (numbers of removable nodes) follow `groups`."""
    parts = [_group(*each) for each in zip(groups, refusals, going, strict=True)]
    grows = any(group.upcoming for group in groups)
    return {
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {"status": "Healthy" if healthy else "Unhealthy"},
            "scaleUp": {"status": "InProgress" if grows else "NoActivity"},
            "scaleDown": {"status": "CandidatesPresent" if any(going) else "NoCandidates", "candidates": sum(going)},
        },
        "nodeGroups": parts,
    }


def _group(group: Group, refusal: Refusal | None, going: int) -> dict[str, Any]:
    total, starting = len(group.nodes), len(group.nodes) - len(group.started)
    up: dict[str, Any] = {"status": "InProgress" if group.upcoming else "NoActivity"}
    if refusal:
        up = {"status": "Backoff", "backoffInfo": {"errorCode": refusal.code, "errorMessage": refusal.message}}
    return {
        "name": group.id,
        "health": {
            "status": "Healthy",
            "nodeCounts": {
                "registered": {
                    "total": total,
                    "ready": group.ready,
                    "notStarted": starting,
                    "unready": {"total": total - group.ready - starting},
                }
            },
            "cloudProviderTarget": group.target,
            "minSize": group.least,
            "maxSize": group.most,
        },
        "scaleUp": up,
        "scaleDown": {"status": "CandidatesPresent" if going else "NoCandidates", "candidates": going},
    }


class Reporter:
    """Writes events, and the status when it changes."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._written: dict[str, Any] = {}
        self._recorded: set[tuple[str, str, str]] = set()

    def write(self, status: dict[str, Any]) -> None:
        if status == self._written:
            return
        at = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"
        text = yaml.safe_dump({"time": at, **status}, sort_keys=False)
        self._kube.apply({**self._map(), "data": {"status": text}}, force=True)
        self._written = status

    def record(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Records an event of the status ConfigMap."""
        found = self._kube.find("v1", "ConfigMap", NAME, NAMESPACE)
        self._event(found or self._map(), "Warning" if warning else "Normal", reason, message)

    def record_for(self, obj: Object, kind: str, reason: str, message: str, *, warning: bool = False) -> None:
        self._event({"apiVersion": "v1", "kind": kind, **obj}, "Warning" if warning else "Normal", reason, message)

    def record_once(self, obj: Object, kind: str, reason: str, message: str, *, warning: bool = False) -> None:
        key = obj["metadata"].get("uid", ""), reason, message
        if key not in self._recorded:
            self._recorded.add(key)
            self.record_for(obj, kind, reason, message, warning=warning)

    def _event(self, obj: Object, severity: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        events.record(self._kube, obj, severity, reason, message, _SOURCE)

    @staticmethod
    def _map() -> Object:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}}
