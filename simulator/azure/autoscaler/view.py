"""A cluster's state in one autoscaler iteration."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from k8s.objects import Object
from simulator.azure.autoscaler.groups import TO_BE_DELETED, Group, is_ready
from simulator.azure.autoscaler.profile import Profile


@dataclass(frozen=True)
class View:
    """A cluster's state at `now` (seconds of any clock). `starting`: see `Group`."""

    groups: Sequence[Group]
    all_nodes: Sequence[Object]
    pods: Sequence[Object]
    profile: Profile
    now: float
    starting: Set[str] = frozenset()
    since_1_35: bool = True

    @cached_property
    def fixed(self) -> list[Object]:
        names = {node["metadata"]["name"] for group in self.groups for node in group.nodes}
        return [node for node in self.all_nodes if node["metadata"]["name"] not in names]

    @cached_property
    def nodes(self) -> list[Object]:
        """Nodes that can run pods. Excludes starting nodes of autoscaled pools, which count as upcoming nodes."""
        return self.fixed + [node for group in self.groups for node in group.started]

    @property
    def healthy(self) -> bool:
        """Whether few enough nodes are unready that the autoscaler acts (clusterstate.go, IsClusterHealthy)."""
        unready = [node for node in self.all_nodes if not is_ready(node)]
        broken = sum(node["metadata"]["name"] not in self.starting for node in unready)
        return self.tolerates(broken, len(self.all_nodes))

    def tolerates(self, unready: int, of: int) -> bool:
        share = self.profile.number("max-total-unready-percentage") / 100
        return unready <= self.profile.number("ok-total-unready-count") or unready <= share * of


def is_since_1_35(version: str) -> bool:
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (1, 35)


def is_going(node: Object) -> bool:
    """Returns whether the node accepts no new pods."""
    taints = node["spec"].get("taints") or []
    return bool(node["spec"].get("unschedulable")) or any(taint["key"] == TO_BE_DELETED for taint in taints)
