"""A workload: its object, its descendants and its pods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from diagnosis.cluster import WORKLOADS, Cluster, Kind, kind_of, where
from diagnosis.owners import chain, pods_of
from k8s.objects import Object, has_ended

ANY_KIND = ("trainjob", "jobset", "leaderworkerset", "cronjob", "daemonset")
_SERVICES = ("deployment", "statefulset", "daemonset", "leaderworkerset", "rayservice")
"""Kinds that replace ended pods, so ended pods do not matter."""


@dataclass(frozen=True)
class Workload:
    """An object of a cluster, and the pods that do its work."""

    cluster: Cluster
    kind: str
    obj: Object

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"]["namespace"])

    @property
    def look(self) -> str:
        return f"kubectl describe {self.kind} {where(self.obj)}"

    @property
    def has_rules(self) -> bool:
        return self.kind in WORKLOADS and self.kind not in ANY_KIND

    @property
    def serves(self) -> bool:
        return self.kind in _SERVICES

    @cached_property
    def made(self) -> list[tuple[Kind, Object]]:
        below = chain(self.cluster, self.namespace, self.obj["metadata"]["uid"])
        return [(WORKLOADS.get(self.kind) or kind_of(self.obj), self.obj), *below]

    @cached_property
    def pods(self) -> list[Object]:
        return pods_of(self.cluster, self.namespace, self.obj["metadata"]["uid"])

    @property
    def live_pods(self) -> list[Object]:
        return [pod for pod in self.pods if not has_ended(pod)]


def is_suspended(obj: Object) -> bool:
    spec = obj["spec"]
    return any(each.get("suspend") for each in (spec, spec.get("runPolicy", {}), spec.get("rayClusterConfig", {})))
