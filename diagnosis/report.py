"""Reports the state of a workload and what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from diagnosis import ray
from diagnosis.causes import causes, tries, under_way
from diagnosis.cluster import NODE, Cluster, owners_of
from diagnosis.cordons import cordoned
from diagnosis.drivers import broken
from diagnosis.ended import disrupted, exits, log, remarks, verdicts
from diagnosis.finding import Finding, Obstacle, merge_obstacles, one_line, wrapped
from diagnosis.lost import lost_pods, never_ending
from diagnosis.node_states import remarks_on_nodes, removal, unhealthy
from diagnosis.owners import makers_of, refusals
from diagnosis.phases import PENDING, RUNNING, phase_of
from diagnosis.policies import unready_policies
from diagnosis.workload import Workload, is_suspended
from diagnosis.wrappers import failure
from k8s.objects import Object, has_ended, is_ready

GONE = "Gone"
BAD = ("Failed", "Aborted", "Terminated", GONE)
DONE = ("Completed", "Complete", "Available", "Succeeded")


@dataclass(frozen=True)
class Report:
    name: str
    phase: str
    message: str = ""
    kind: str = ""
    """The kubectl name of the kind; empty if the object does not exist."""
    uid: str = ""
    findings: tuple[Finding, ...] = field(default=())
    verdicts: tuple[str, ...] = ()
    """The verdict lines in its pods' logs, and errors from reading the logs; empty before the workload has ended."""
    remarks: tuple[str, ...] = ()
    exits: tuple[str, ...] = ()
    """The ends of its containers, if it has failed. Printed only if there are no verdicts."""
    log: str = ""
    """The command that shows its log, if it has failed."""

    @property
    def outcome(self) -> str:
        known = {**dict.fromkeys(BAD, "failed"), **dict.fromkeys(DONE, "succeeded"), RUNNING: "running"}
        return known.get(self.phase, "pending")

    def head(self) -> list[str]:
        return wrapped(f"{self.name}: {self.phase} {one_line(self.message)}".rstrip(), "  ")

    def lines(self, printed: Mapping[Finding, str] | None = None) -> list[str]:
        """Returns lines with the state, then verdicts, remarks and causes, and last where to look.

        `printed` maps findings that were printed for another workload to the name of that workload.
        """
        texts = (*(self.verdicts or self.exits), *self.remarks)
        same = dict.fromkeys((printed or {})[each] for each in self.findings if each in (printed or {}))
        return [
            *self.head(),
            *(line for text in texts for line in wrapped(f"  {text}", "    ")),
            *(f"  waits: for the same reason as {name}" for name in same),
            *(line for each in self.findings if each not in (printed or {}) for line in each.lines()),
            *([f"  look at it: {self.log}"] if self.log else []),
        ]

    def judged(self, last_lines: Iterable[str], unread: Iterable[str] = ()) -> Report:
        failed = (f"a log cannot be read: {one_line(why)}" for why in unread)
        return replace(self, verdicts=(*verdicts(last_lines), *failed))


def report(cluster: Cluster, namespace: str, name: str) -> Report:
    """Reports on `name` or `kind/name`. If several objects match, uses the first: owners come before owned objects."""
    found = _found(cluster, namespace, name)
    if not found:
        return Report(name, GONE, "the cluster does not have this object")
    it = Workload(cluster, *found[0])
    phase, message = _phase(it)
    known = Report(name, phase, message, it.kind, it.obj["metadata"]["uid"])
    return _ended(it, known) if phase in (*BAD, *DONE) else _waiting(it, known)


def _phase(it: Workload) -> tuple[str, str]:
    phase, message = phase_of(it.kind, it.obj)
    if it.kind == "appwrapper" and phase == "Failed":
        message = failure(it.cluster, it.obj)
    if phase == RUNNING and any(is_suspended(each) for _, each in it.made):
        phase = PENDING
    if phase == PENDING and not it.has_rules and it.live_pods and all(map(is_ready, it.live_pods)):
        phase = RUNNING
    return phase, message


def _ended(it: Workload, known: Report) -> Report:
    pods = [pod for pod in it.pods if not it.serves or not has_ended(pod)]
    if known.phase in DONE:
        return replace(known, remarks=tuple(remarks(pods)))
    refused = () if it.pods else (each.why for each in refusals(it.cluster, it.made, it.pods))
    return replace(
        known,
        findings=tuple(lost_pods(it.cluster, it.pods)),
        remarks=(*remarks(pods), *tries(it), *refused),
        exits=tuple(exits(it.pods)),
        log=ray.failed_submitter(it.cluster, it.obj, it.pods) or log(it.pods),
    )


def _waiting(it: Workload, known: Report) -> Report:
    found, begun = dict.fromkeys(causes(it, known.phase)), list(tries(it))
    if known.phase == PENDING and all(each.passing for each in found):
        found |= dict.fromkeys(under_way(it, known=bool(found)))
    if known.phase == PENDING:  # it also waits for a retry
        found |= dict.fromkeys(Finding(text, it.look, passing=True) for text in begun)
        begun = []
    stubs = [pod for pod in it.live_pods if is_ready(pod) and pod["status"].get("reason")]  # no container runs in them
    noted = (*remarks_on_nodes(it.cluster, it.pods), *remarks(stubs), *disrupted(it.pods), *begun)
    return replace(known, findings=tuple(found), remarks=noted)


def platform(cluster: Cluster) -> Report:
    def on_nodes(look: Callable[[Object], Iterable[Obstacle]]) -> list[Finding]:
        return merge_obstacles((_name(node), obstacle) for node in cluster.all(NODE) for obstacle in look(node))

    nodes = (*on_nodes(removal), *on_nodes(partial(broken, cluster)), *on_nodes(unhealthy), *never_ending(cluster))
    found = (*nodes, *unready_policies(cluster, starting=True), *on_nodes(partial(cordoned, cluster)))
    return Report("platform", "NotReady" if found else "Ready", findings=found)


def names(cluster: Cluster, namespace: str) -> list[str]:
    """Returns the names of all workloads in a namespace, with kinds if ambiguous. Excludes pods with an owner."""
    found = Counter(_name(each) for kind, each in cluster.workloads(namespace) if kind != "pod" or not owners_of(each))
    alike = {name: with_kinds(cluster, namespace, name) for name, count in found.items() if count > 1}
    return [each for name in sorted(found) for each in alike.get(name, [name])]


def with_kinds(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Returns `kind/name` of each workload with this name, or only the name if one workload has it. Excludes workloads
    that another of them created.
    """
    found = _found(cluster, namespace, name)
    makers = {uid for _, each in found for uid in makers_of(cluster, namespace, each["metadata"]["uid"])}
    first = [f"{kind}/{_name(each)}" for kind, each in found if not owners_of(each) & makers]
    return first if len(first) > 1 else [name]


def _found(cluster: Cluster, namespace: str, name: str) -> list[tuple[str, Object]]:
    kind, _, own = name.rpartition("/")
    given: list[Callable[[], Iterable[tuple[str, Object]]]] = [
        lambda: cluster.workloads(namespace),
        lambda: ((of.name.lower(), each) for of, each in cluster.others(namespace)),
        lambda: cluster.named_in_events(namespace, own),
    ]
    alike = (
        [
            (called, each)
            for called, each in objects()
            if kind.lower().removesuffix("s") in ("", called) and _name(each) == own
        ]
        for objects in given
    )
    return next(filter(None, alike), [])


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
