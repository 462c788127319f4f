"""A workload as the rest of the package looks at it: its object, all that it has made, and its pods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from diagnosis.cluster import WORKLOADS, Cluster, Kind, kind_of, where
from diagnosis.owners import chain, pods_of
from k8s.objects import Object, has_ended

ANY_KIND = ("trainjob", "jobset", "leaderworkerset", "cronjob", "daemonset")
"""Kinds without rules of their own, as those that WORKLOADS lacks."""
_SERVICES = ("deployment", "statefulset", "daemonset", "leaderworkerset", "rayservice")
"""Kinds whose pods are replaced, so that those that have ended do not matter."""


@dataclass(frozen=True)
class Workload:
    """One object of a cluster, whose pods do the work."""

    cluster: Cluster
    kind: str
    """As kubectl calls it."""
    obj: Object

    @property
    def namespace(self) -> str:
        """Also that of its pods."""
        return str(self.obj["metadata"]["namespace"])

    @property
    def look(self) -> str:
        """The command that shows more of it."""
        return f"kubectl describe {self.kind} {where(self.obj)}"

    @property
    def has_rules(self) -> bool:
        """Whether the package has rules for its kind."""
        return self.kind in WORKLOADS and self.kind not in ANY_KIND

    @property
    def serves(self) -> bool:
        """Whether its pods are replaced when they end."""
        return self.kind in _SERVICES

    @cached_property
    def made(self) -> list[tuple[Kind, Object]]:
        """Itself and all that it has made on the way to its pods."""
        below = chain(self.cluster, self.namespace, self.obj["metadata"]["uid"])
        return [(WORKLOADS.get(self.kind) or kind_of(self.obj), self.obj), *below]

    @cached_property
    def pods(self) -> list[Object]:
        """All that there are, or itself if it is a pod."""
        return pods_of(self.cluster, self.namespace, self.obj["metadata"]["uid"])

    @property
    def live_pods(self) -> list[Object]:
        """Those that have not ended."""
        return [pod for pod in self.pods if not has_ended(pod)]


def is_suspended(obj: Object) -> bool:
    """Returns whether its spec, in one of the places that kinds have for it, suspends it."""
    spec = obj["spec"]
    return any(each.get("suspend") for each in (spec, spec.get("runPolicy", {}), spec.get("rayClusterConfig", {})))
