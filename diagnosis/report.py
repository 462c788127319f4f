"""How a workload fares, and what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from diagnosis import kueue, ray, volcano
from diagnosis.cluster import (
    JOB,
    NODE,
    POD_GROUP,
    RAY_JOB,
    RAY_SERVICE,
    TRAINING_JOBS,
    VOLCANO_JOB,
    WORKLOADS,
    Cluster,
    Kind,
    kind_of,
    owners_of,
    where,
)
from diagnosis.conditions import remarks_on_nodes, sick
from diagnosis.cordons import cordoned
from diagnosis.drivers import broken
from diagnosis.ended import disrupted, exits, failing, job_retries, log, remarks, verdicts
from diagnosis.finding import Finding, Obstacle, one_line, together, wrapped
from diagnosis.lost import is_lost, lost_pods, never_ending
from diagnosis.node_states import taken
from diagnosis.owners import chain, makers_of, pods_of, refusals, templates
from diagnosis.phases import ANY_KIND, PENDING, RUNNING, phase_of, stated, under_way
from diagnosis.placement import not_placed
from diagnosis.pods import not_started_pods
from diagnosis.policies import unready_policies
from diagnosis.wrappers import failure, holding, kept, started_anew
from k8s.objects import Object, condition, has_ended, is_ready

GONE = "Gone"
BAD = ("Failed", "Aborted", "Terminated", GONE)
DONE = ("Completed", "Complete", "Available", "Succeeded")
_WRAPPER = "appwrapper"
_SERVICES = ("deployment", "statefulset", "daemonset", "leaderworkerset", "rayservice")
"""Kinds of workloads whose pods are replaced, so that those that have ended do not matter."""
_KUBERAY = ("KubeRay", "app.kubernetes.io/component=kuberay-operator")
_CONTROLLERS = {
    "vcjob": ("Volcano's controllers", "app=volcano-controller"),
    **dict.fromkeys(TRAINING_JOBS, ("the training operator", "control-plane=kubeflow-training-operator")),
    **dict.fromkeys(("rayjob", "rayservice", "raycluster"), _KUBERAY),
    _WRAPPER: ("AppWrapper's controller", "app.kubernetes.io/name=appwrapper"),
}
"""By kinds of workloads: what makes their pods, and the label of its own pods, as charts and manifests have it."""


@dataclass(frozen=True)
class Report:
    """What the cluster says of one workload."""

    name: str
    phase: str
    message: str = ""
    kind: str = ""
    """As kubectl calls it; empty where there is no such object."""
    uid: str = ""
    findings: tuple[Finding, ...] = field(default=())
    verdicts: tuple[str, ...] = ()
    """Once it has ended: the lines in which its pods judge, and what kept logs from being read."""
    remarks: tuple[str, ...] = ()
    """What is said of its nodes, and once it has ended of its pods."""
    exits: tuple[str, ...] = ()
    """Once it has failed: with what its containers ended, which a verdict says better."""
    log: str = ""
    """Once it has failed: the command that shows its log, or why there is none."""

    @property
    def outcome(self) -> str:
        """How far the workload is, whatever its kind calls that."""
        known = {**dict.fromkeys(BAD, "failed"), **dict.fromkeys(DONE, "succeeded"), RUNNING: "running"}
        return known.get(self.phase, "pending")

    def head(self) -> list[str]:
        """How the workload fares."""
        return wrapped(f"{self.name}: {self.phase} {one_line(self.message)}".rstrip(), "  ")

    def lines(self) -> list[str]:
        """How it fares, and below it what it has said, each cause, and where to look."""
        said = [
            line for text in (*(self.verdicts or self.exits), *self.remarks) for line in wrapped(f"  {text}", "    ")
        ]
        causes = [line for finding in self.findings for line in finding.lines()]
        return [*self.head(), *said, *causes, *([f"  look at it: {self.log}"] if self.log else [])]

    def judged(self, last_lines: Iterable[str], unread: Iterable[str] = ()) -> Report:
        """With the verdicts among the last lines of its pods' logs, and what kept others from being read."""
        failed = (f"a log cannot be read: {one_line(why)}" for why in unread)
        return replace(self, verdicts=(*verdicts(last_lines), *failed))


def report(cluster: Cluster, namespace: str, name: str) -> Report:
    """`name` may be `kind/name`; of several workloads of a name, the first that is not made by another is reported."""
    found = _found(cluster, namespace, name)
    if not found:
        return Report(name, GONE, "there is no such object in the cluster")
    kind, workload = found[0]
    phase, message = phase_of(kind, workload)
    if kind == _WRAPPER and phase == "Failed":
        message = failure(cluster, workload)
    pods = pods_of(cluster, namespace, workload["metadata"]["uid"])
    if phase == RUNNING and any(_is_suspended(each) for _, each in _made(cluster, workload, kind)):
        phase = PENDING
    live = [pod for pod in pods if not has_ended(pod)]
    if phase == PENDING and _is_any(kind) and live and all(map(is_ready, live)):
        phase = RUNNING
    told = (name, phase, message, kind, workload["metadata"]["uid"])
    tries = list(_tries(cluster, workload, kind, pods))
    if phase in (*BAD, *DONE):
        there = [pod for pod in pods if kind not in _SERVICES or not has_ended(pod)]
        if phase in DONE:
            return Report(*told, remarks=tuple(remarks(there)))
        refused = () if pods else (each.why for each in refusals(cluster, _made(cluster, workload, kind), pods))
        all_remarks, look = (
            (*remarks(there), *tries, *refused),
            ray.failed_submitter(cluster, workload, pods) or log(pods),
        )
        return Report(*told, tuple(lost_pods(cluster, pods)), remarks=all_remarks, exits=tuple(exits(pods)), log=look)
    causes = dict.fromkeys(_causes(cluster, workload, kind, phase))
    if phase == PENDING and (not causes or all(each.passing for each in causes)):
        causes |= dict.fromkeys(_under_way(cluster, workload, kind, pods, known=bool(causes)))
    if phase == PENDING:  # then it waits for another try, too
        look = f"kubectl describe {kind} {where(workload)}"
        causes |= dict.fromkeys(Finding(text, look, passing=True) for text in tries)
        tries = []
    fakes = [pod for pod in live if is_ready(pod) and pod["status"].get("reason")]  # the node runs nothing for them
    all_remarks = (*remarks_on_nodes(cluster, pods), *remarks(fakes), *disrupted(pods), *tries)
    return Report(*told, findings=tuple(causes), remarks=all_remarks)


def platform(cluster: Cluster) -> Report:
    """Whether every node and policy is in order, no node is cordoned and no pod is kept from ending by a lost one,
    though no workload may wait for it.
    """

    def on_nodes(look: Callable[[Object], Iterable[Obstacle]]) -> list[Finding]:
        return together((_name(node), obstacle) for node in cluster.all(NODE) for obstacle in look(node))

    nodes = (*on_nodes(taken), *on_nodes(partial(broken, cluster)), *on_nodes(sick), *never_ending(cluster))
    found = (*nodes, *unready_policies(cluster, starting=True), *on_nodes(partial(cordoned, cluster)))
    return Report("platform", "NotReady" if found else "Ready", findings=found)


def names(cluster: Cluster, namespace: str) -> list[str]:
    """Returns all workloads of a namespace, with their kinds where several have the same name; no pods of others."""
    found = Counter(_name(each) for kind, each in cluster.workloads(namespace) if kind != "pod" or not owners_of(each))
    alike = {name: with_kinds(cluster, namespace, name) for name, count in found.items() if count > 1}
    return [each for name in sorted(found) for each in alike.get(name, [name])]


def with_kinds(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Returns `kind/name` of each workload of the name that no other of them has made; the name alone if it is one."""
    found = _found(cluster, namespace, name)
    makers = {uid for _, each in found for uid in makers_of(cluster, namespace, each["metadata"]["uid"])}
    first = [f"{kind}/{_name(each)}" for kind, each in found if not owners_of(each) & makers]
    return first if len(first) > 1 else [name]


def _found(cluster: Cluster, namespace: str, name: str) -> list[tuple[str, Object]]:
    """Returns all workloads of a name, or of a `kind/name`, with their kinds."""
    kind, _, own = name.rpartition("/")
    given: list[Callable[[], Iterable[tuple[str, Object]]]] = [
        lambda: cluster.workloads(namespace),
        lambda: ((of.name.lower(), each) for of, each in cluster.others(namespace)),
        lambda: cluster.told_of(namespace, own),
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


def _causes(cluster: Cluster, workload: Object, kind: str, phase: str) -> Iterable[Finding]:
    pods = pods_of(cluster, _namespace(workload), workload["metadata"]["uid"])
    yield from lost_pods(cluster, pods)
    if kind == _WRAPPER:
        yield from holding(cluster, workload)
    if _is_suspended(workload):
        yield from _suspended(cluster, workload, kind)
        return
    # Volcano makes no other pod for one that failed; Kubernetes does, and only while that waits the failed one matters.
    counts = [pod for pod in pods if not has_ended(pod) or kind == "vcjob" or phase == PENDING]
    on_nodes = [
        pod for pod in counts if pod["spec"].get("nodeName") and not is_ready(pod) and not is_lost(cluster, pod)
    ]
    yield from not_started_pods(cluster, on_nodes)
    if _is_any(kind) and phase == PENDING:
        yield from _of_any_kind(cluster, workload, kind)
    if not pods and (kind in _SERVICES or _is_any(kind)):
        yield from kueue.held(cluster, workload) if not kueue.is_admitted(cluster, workload) else ()
    yield from _controllers(cluster, workload, kind, pods)
    if not pods and phase == PENDING and kind in WORKLOADS:
        makers = [
            each for of, each in _made(cluster, workload, kind) if each is workload or of in TRAINING_JOBS.values()
        ]
        pods = [pod for maker in makers for pod in templates(cluster, maker)]
    yield from not_placed(cluster, [pod for pod in pods if not pod["spec"].get("nodeName") and not has_ended(pod)])


def _tries(cluster: Cluster, workload: Object, kind: str, pods: Sequence[Object]) -> Iterable[str]:
    """What it has begun anew for."""
    if kind == _WRAPPER:
        yield from (*started_anew(cluster, workload), *kept(workload))
    if kind == "vcjob" and (spent := volcano.restarts(workload)):
        yield f"Volcano has restarted it: {spent}"
    for of, each in _made(cluster, workload, kind):
        again = condition(each, "Restarting") if of in TRAINING_JOBS.values() else {}
        if again.get("status") == "True":
            yield one_line(f"the training operator restarts it: {again.get('message') or again.get('reason', '')}")
        if told := job_retries(each, pods) if of == JOB else ray.retries(each) if of == RAY_JOB else "":
            yield told


def _is_any(kind: str) -> bool:
    """Whether no other module has rules for the kind."""
    return kind in ANY_KIND or kind not in WORKLOADS


def _of_any_kind(cluster: Cluster, workload: Object, kind: str) -> Iterable[Finding]:
    """What its conditions say, and those of the jobs that it has made."""
    for of, each in _made(cluster, workload, kind):
        phase, message = phase_of(of.name.lower(), each) if of == JOB or each is workload else ("", "")
        look = f"kubectl describe {of.name.lower()} {where(each)}"
        yield from stated(each, look) if each is workload or of not in WORKLOADS.values() else ()
        if phase == "Failed":
            yield Finding(f"{of.name} {_name(each)} failed: {message}", look)


def _suspended(cluster: Cluster, workload: Object, kind: str) -> Iterable[Finding]:
    """In Kueue's words, where it is Kueue that holds it back."""
    yield from kueue.held(cluster, workload) or [Finding("it is suspended", f"kubectl get {kind} {where(workload)}")]


def _made(cluster: Cluster, workload: Object, kind: str) -> list[tuple[Kind, Object]]:
    """The workload and all that it has made on the way to its pods."""
    return [
        (WORKLOADS.get(kind) or kind_of(workload), workload),
        *chain(cluster, _namespace(workload), workload["metadata"]["uid"]),
    ]


def _is_suspended(obj: Object) -> bool:
    spec = obj["spec"]
    return any(each.get("suspend") for each in (spec, spec.get("runPolicy", {}), spec.get("rayClusterConfig", {})))


def _controllers(cluster: Cluster, workload: Object, kind: str, pods: Sequence[Object]) -> Iterable[Finding]:
    """What the controllers of the workload, and of what it has made, do or cannot do."""
    if kind == "vcjob":
        yield from volcano.changing(workload)
    made = _made(cluster, workload, kind)
    for of, each in made:
        if _is_suspended(each):
            yield from _suspended(cluster, each, of.resource)
        if of == RAY_JOB:
            yield from ray.waiting(each)
        if of == RAY_SERVICE:
            yield from ray.serving(cluster, each)
        if of == VOLCANO_JOB and not pods and not cluster.owned(POD_GROUP, _namespace(each), [each["metadata"]["uid"]]):
            yield from volcano.closed_queue(cluster, each, sure=cluster.whole)
        if of == JOB and (why := failing(each)):
            yield Finding(why, f"kubectl describe job {where(each)}")
    yield from (refused := list(refusals(cluster, made, pods)))
    called, label = _CONTROLLERS.get(kind, ("", ""))
    if kind == "mpijob" and str(workload.get("apiVersion")).endswith("/v2beta1"):
        called = ""  # the MPI operator's, whose labels differ between its manifests and charts
    untouched = not pods and not refused and made[1:] == [] and (kind == "vcjob" or not workload["status"])
    if called and untouched and not cluster.runs(dict([label.split("=")])):
        verb = "do" if called.endswith("s") else "does"
        yield Finding(f"{called} {verb} not run", f"kubectl get pods -A --selector {label}")


def _under_way(
    cluster: Cluster, workload: Object, kind: str, pods: Sequence[Object], *, known: bool
) -> Iterable[Finding]:
    """How far its pods are, where nothing is known to hold them up; `known` is whether a passing cause is."""
    if kind == "cronjob" and not known and all(map(has_ended, pods)):
        return [ray.scheduled(workload, kind)]
    if pods or known:
        return under_way(cluster, pods)
    look = f"kubectl describe {kind} {where(workload)}"
    not_made = Finding("its pods are not made yet", look, passing=True)
    return [ray.scheduled(workload, kind) if kind == "raycronjob" else not_made]


def _namespace(obj: Object) -> str:
    return str(obj["metadata"]["namespace"])


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
