"""What the autoscaler sees of a cluster at one look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from diagnosis.cluster import Object
from simulator.azure.autoscaler.groups import TO_BE_DELETED, Group, is_ready
from simulator.azure.autoscaler.profile import Profile


@dataclass(frozen=True)
class View:
    """`all_nodes` are as the API server has them; `now` is in seconds, of any clock."""

    groups: Sequence[Group]
    all_nodes: Sequence[Object]
    pods: Sequence[Object]
    profile: Profile
    now: float

    @cached_property
    def nodes(self) -> list[Object]:
        """Those of no group, then those of the groups, as they will be."""
        own = [node for group in self.groups for node in group.nodes]
        names = {node["metadata"]["name"] for node in own}
        return [node for node in self.all_nodes if node["metadata"]["name"] not in names] + own

    @property
    def healthy(self) -> bool:
        """Else it does nothing: it might be the cluster that is broken."""
        unready = sum(not is_ready(node) for node in self.all_nodes)
        share = self.profile.number("max-total-unready-percentage") / 100
        return unready <= self.profile.number("ok-total-unready-count") or unready <= share * len(self.all_nodes)


def is_going(node: Object) -> bool:
    """Whether nothing new goes there, so that it is no room for anybody."""
    taints = node["spec"].get("taints") or []
    return bool(node["spec"].get("unschedulable")) or any(taint["key"] == TO_BE_DELETED for taint in taints)
