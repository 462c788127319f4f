"""The autoscaler's iteration: handles failed scale-ups, pending pods and unneeded nodes (cluster-autoscaler/core)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from k8s.objects import Object
from simulator.azure.arm_world import World
from simulator.azure.autoscaler import expanders, groups, scale_up
from simulator.azure.autoscaler.backoff import Backoff
from simulator.azure.autoscaler.fit import is_waiting
from simulator.azure.autoscaler.groups import Group, is_ready, lacks_gpus
from simulator.azure.autoscaler.profile import Profile
from simulator.azure.autoscaler.removals import Removals, choose
from simulator.azure.autoscaler.scale_down import Unneeded, unneeded
from simulator.azure.autoscaler.status import NAMESPACE, Reporter, summary
from simulator.azure.autoscaler.view import View, is_since_1_35
from simulator.azure.errors import ArmError
from simulator.azure.operations import Operations
from simulator.azure.store import Record
from simulator.kube.client import KubeClient

_MAX_REACHED, _BACKED_OFF = "max node group size reached", "in backoff after failed scale-up"
_UNREADY = "not ready for scale-up"
_NO_MACHINE = "provisioning-state-failed", "Azure failed to provision a node for this node group"
"""Code and text of upstream's error if Azure cannot allocate a machine (azure_scale_set_instance_cache.go)."""


@dataclass(frozen=True)
class ScaleUp:
    """A requested scale-up in progress."""

    at: float
    nodes: int


class Scaler:
    """A cluster's autoscaler state. Times are in seconds of `clock`."""

    def __init__(
        self,
        world: World,
        operations: Operations,
        kube: KubeClient,
        clock: Callable[[], float],
        chance: random.Random | None = None,
    ) -> None:
        self._world, self._operations, self._kube, self._clock = world, operations, kube, clock
        self._chance = chance or random.Random()  # noqa: S311 - only chooses a pool
        self._backoff, self._reporter = Backoff(), Reporter(kube)
        self._removals = Removals(kube, self._reporter, lambda *of: groups.delete(world, operations, *of))
        self._since: dict[str, float] = {}
        self._failing: dict[str, float] = {}
        """The time, by group, since which machines are missing and no operation runs."""
        self._scale_ups: dict[str, ScaleUp] = {}
        self._seen: dict[str, float] = {}
        self._grown = float("-inf")

    def look(self, cluster: Record, nodes: Sequence[Object], pods: Sequence[Object]) -> None:
        """Runs one iteration. Raises ApiError or httpx.HTTPError if the API server does not answer."""
        profile, now = Profile(cluster.properties.get("autoScalerProfile")), self._clock()
        starting = self._starting(nodes, now - profile.start_up_s)
        found = groups.groups(self._world, cluster, nodes, starting)
        view = View(found, nodes, pods, profile, now, starting, is_since_1_35(cluster.properties["kubernetesVersion"]))
        self._backoff.keep({group.id for group in found}, view.now)
        self._note_refusals(view)
        spare: list[Unneeded] = []
        if view.healthy:
            self._removals.advance(view)
            if _cannot_count(view) or not (self._fill(view) or self._grow(view)):
                spare = self._shrink(view)
        else:
            self._since = {}  # core/static_autoscaler.go, CleanUpUnneededNodes
        refusals = [self._backoff.of(group.id, view.now) for group in found]
        could_go = [sum(each.group is group for each in spare) for group in found]
        self._reporter.write(summary(found, refusals, could_go, healthy=view.healthy))

    def _starting(self, nodes: Sequence[Object], since: float) -> set[str]:
        names = {node["metadata"]["name"]: is_ready(node) for node in nodes}
        self._seen = {name: self._seen.get(name, self._clock()) for name in names}
        return {name for name, ready in names.items() if not ready and self._seen[name] > since}

    # -- more nodes ----------------------------------------------------------------------------------------------------

    def _note_refusals(self, view: View) -> None:
        """Records failed and timed-out scale-ups. For machines that the user requested, waits until a time limit."""
        limit_s = view.profile.duration_s("max-node-provision-time")
        for group in view.groups:
            if not group.failed:
                self._failing.pop(group.id, None)
                self._end_scale_up(group, view)
                continue
            since = self._failing.setdefault(group.id, view.now)
            waits = group.id not in self._scale_ups and view.now < since + limit_s
            if not waits and groups.give_up(self._world, self._operations, group):
                self._scale_ups.pop(group.id, None)
                self._refused(group, *_NO_MACHINE, view.now)

    def _end_scale_up(self, group: Group, view: View) -> None:
        """Ends a finished or late scale-up (clusterstate.go, updateScaleRequests)."""
        request = self._scale_ups.get(group.id)
        if request is None or group.pool.busy:
            return
        late = view.now > request.at + view.profile.provision_s
        if group.upcoming and late:
            text = f"Nodes added to group {group.id} failed to register within {view.now - request.at:.0f}s"
            self._reporter.record("ScaleUpTimedOut", text, warning=True)
            self._backoff.refused(group.id, "timeout", f"Scale-up timed out for node group {group.id}", view.now)
        if late or not group.upcoming:
            del self._scale_ups[group.id]

    def _fill(self, view: View) -> bool:
        """Scales pools up to their minimum (AKS's page on the autoscaler). Returns whether it sent a request."""
        short = [group for group in view.groups if group.target < group.least and not self._skipped(group, view)]
        return any([self._ask(group, group.least, view.now) for group in short])

    def _grow(self, view: View) -> bool:
        delay = view.profile.duration_s("new-pod-scale-up-delay")
        waiting = [pod for pod in view.pods if is_waiting(pod) and (not delay or _age_s(pod) >= delay)]
        left = scale_up.unplaced(waiting, view) if waiting else []
        able = [group for group in view.groups if not self._skipped(group, view)]
        if options := scale_up.options(left, able):
            priorities = self._priorities(view.profile)
            chosen = expanders.best(view.profile.expander, options, priorities, self._chance, self._warn)
            if chosen is not None:
                return self._ask(chosen.group, chosen.group.target + chosen.nodes, view.now, chosen.pods)
        for each in left:
            text = scale_up.reasons(each.pods[0], view.groups, lambda group: self._skipped(group, view))
            for pod in each.pods:
                self._reporter.record_once(pod, "Pod", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {text}")
        return False

    def _ask(self, group: Group, count: int, now: float, pods: Sequence[Object] = ()) -> bool:
        """Returns whether it sent a request. If Azure rejects the request, the next iteration tries another group."""
        size = f"{group.id} size to {count} instead of {group.target} (max: {group.most})"
        try:
            if not groups.increase(self._world, self._operations, group, count):
                return False
        except ArmError as error:
            self._refused(group, error.code, f"{error.code}: {error}", now)
            return True
        before = self._scale_ups.get(group.id)
        self._scale_ups[group.id] = ScaleUp(now, count - group.target + (before.nodes if before else 0))
        self._grown = now
        self._reporter.record("ScaledUpGroup", f"Scale-up: setting group {size}")
        text = f"pod triggered scale-up: [{{{group.id} {group.target}->{count} (max: {group.most})}}]"
        for pod in pods:
            self._reporter.record_for(pod, "Pod", "TriggeredScaleUp", text)
        return True

    def _refused(self, group: Group, code: str, message: str, now: float) -> None:
        self._backoff.refused(group.id, code, message, now)
        text = f"Scale-up failed for group {group.id}: {message}"
        self._reporter.record("FailedToScaleUpGroup", text, warning=True)

    def _skipped(self, group: Group, view: View) -> str:
        request = self._scale_ups.get(group.id)
        expected = group.target - (request.nodes if request else 0)
        if not view.tolerates(expected - group.ready, len(group.nodes)):  # clusterstate.go, IsNodeGroupHealthy
            return _UNREADY
        if self._backoff.of(group.id, view.now):
            return _BACKED_OFF
        return _MAX_REACHED if group.target >= group.most else ""

    def _priorities(self, profile: Profile) -> Object | None:
        if profile.expander != "priority":
            return None
        return self._kube.find("v1", "ConfigMap", expanders.PRIORITIES, NAMESPACE)

    def _warn(self, reason: str, message: str) -> None:
        found = self._kube.find("v1", "ConfigMap", expanders.PRIORITIES, NAMESPACE)
        if found:
            self._reporter.record_once(found, "ConfigMap", reason, message, warning=True)

    # -- fewer nodes ---------------------------------------------------------------------------------------------------

    def _shrink(self, view: View) -> list[Unneeded]:
        now, profile = view.now, view.profile
        spare = unneeded(view, self._kube.list("policy/v1", "PodDisruptionBudget"))
        self._since = {each.name: self._since.get(each.name, now) for each in spare}
        ready = [each for each in spare if now - self._since[each.name] >= _removal_delay_s(each, profile)]
        rests_until = max(
            self._grown + profile.duration_s("scale-down-delay-after-add"),
            self._removals.last + profile.after_delete_s,
            self._removals.failed + profile.duration_s("scale-down-delay-after-failure"),
        )
        if now >= rests_until:
            self._removals.begin(choose(ready, self._removals, view), view)
        return spare


def _cannot_count(view: View) -> bool:
    """Returns whether every scale-up fails, because a node outside autoscaled pools does not advertise its GPUs.

    Since 1.35, each scale-up first counts the resources of all nodes (resourcequotas/usage.go and gpu_processor.go,
    kubernetes/autoscaler#10301). This fails, because pools without autoscaling have no template. Only AKS's
    control-plane log has the error; pods get no event.
    """
    return view.since_1_35 and any(map(lacks_gpus, view.fixed))


def _removal_delay_s(each: Unneeded, profile: Profile) -> float:
    return profile.duration_s(f"scale-down-{'unneeded' if is_ready(each.node) else 'unready'}-time")


def _age_s(pod: Object) -> float:
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - made).total_seconds()
