"""Collects, in the order of the report, what a workload waits for and why it was retried."""

from __future__ import annotations

from collections.abc import Iterable

from diagnosis import kueue, ray, volcano
from diagnosis.cluster import JOB, POD_GROUP, RAY_JOB, RAY_SERVICE, TRAINING_JOBS, VOLCANO_JOB, WORKLOADS, Kind, where
from diagnosis.ended import failing, job_retries
from diagnosis.finding import Finding, one_line
from diagnosis.lost import is_lost, lost_pods
from diagnosis.owners import refusals, templates
from diagnosis.phases import PENDING, phase_of, pods_under_way, stated
from diagnosis.placement import not_placed
from diagnosis.pods import not_started_pods
from diagnosis.workload import Workload, is_suspended
from diagnosis.wrappers import holding, kept, restarted
from k8s.objects import Object, condition, has_ended, is_ready

_KUBERAY = ("KubeRay", "app.kubernetes.io/component=kuberay-operator")
_CONTROLLERS = {
    "vcjob": ("Volcano's controllers", "app=volcano-controller"),
    **dict.fromkeys(TRAINING_JOBS, ("the training operator", "control-plane=kubeflow-training-operator")),
    **dict.fromkeys(("rayjob", "rayservice", "raycluster"), _KUBERAY),
    "appwrapper": ("AppWrapper's controller", "app.kubernetes.io/name=appwrapper"),
}


def causes(it: Workload, phase: str) -> Iterable[Finding]:
    yield from lost_pods(it.cluster, it.pods)
    if it.kind == "appwrapper":
        yield from holding(it.cluster, it.obj)
    if is_suspended(it.obj):
        yield from _suspended(it, it.obj, it.kind)
        return
    yield from not_started_pods(it.cluster, _on_nodes(it, phase))
    if not it.has_rules and phase == PENDING:
        yield from _of_any_kind(it)
    if not it.pods and (it.serves or not it.has_rules) and not kueue.is_admitted(it.cluster, it.obj):
        yield from kueue.held(it.cluster, it.obj)
    yield from _controllers(it)
    pods = it.pods
    if not pods and phase == PENDING and it.kind in WORKLOADS:
        makers = [each for of, each in it.made if each is it.obj or of in TRAINING_JOBS.values()]
        pods = [pod for maker in makers for pod in templates(it.cluster, maker)]
    yield from not_placed(it.cluster, [pod for pod in pods if not pod["spec"].get("nodeName") and not has_ended(pod)])


def _on_nodes(it: Workload, phase: str) -> list[Object]:
    """Returns the pods that have a node and are not ready. Omits pods on lost nodes.

    Failed pods count only while the workload is pending, because Kubernetes replaces them. Volcano does not replace
    them.
    """
    counts = it.pods if it.kind == "vcjob" or phase == PENDING else it.live_pods
    on_nodes = (pod for pod in counts if pod["spec"].get("nodeName") and not is_ready(pod))
    return [pod for pod in on_nodes if not is_lost(it.cluster, pod)]


def tries(it: Workload) -> Iterable[str]:
    if it.kind == "appwrapper":
        yield from (*restarted(it.cluster, it.obj), *kept(it.obj))
    if it.kind == "vcjob" and (spent := volcano.restarts(it.obj)):
        yield f"Volcano has restarted it: {spent}"
    for of, each in it.made:
        again = condition(each, "Restarting") if of in TRAINING_JOBS.values() else {}
        if again.get("status") == "True":
            yield one_line(f"the training operator restarts it: {again.get('message') or again.get('reason', '')}")
        if retried := job_retries(each, it.pods) if of == JOB else ray.retries(each) if of == RAY_JOB else "":
            yield retried


def under_way(it: Workload, *, known: bool) -> Iterable[Finding]:
    if it.kind == "cronjob" and not known and not it.live_pods:
        return [ray.scheduled(it.obj, it.kind)]
    if it.pods or known:
        return pods_under_way(it.cluster, it.pods)
    if it.kind == "raycronjob":
        return [ray.scheduled(it.obj, it.kind)]
    return [Finding("its pods do not exist yet", it.look, passing=True)]


def _of_any_kind(it: Workload) -> Iterable[Finding]:
    for of, each in it.made:
        phase, message = phase_of(of.name.lower(), each) if of == JOB or each is it.obj else ("", "")
        look = f"kubectl describe {of.name.lower()} {where(each)}"
        yield from stated(each, look) if each is it.obj or of not in WORKLOADS.values() else ()
        if phase == "Failed":
            yield Finding(f"{of.name} {each['metadata']['name']} failed: {message}", look)


def _suspended(it: Workload, obj: Object, kind: str) -> Iterable[Finding]:
    return kueue.held(it.cluster, obj) or [Finding("it is suspended", f"kubectl get {kind} {where(obj)}")]


def _controllers(it: Workload) -> Iterable[Finding]:
    if it.kind == "vcjob":
        yield from volcano.changing(it.obj)
    for of, each in it.made:
        yield from _of_controller(it, of, each)
    yield from (refused := list(refusals(it.cluster, it.made, it.pods)))
    called, label = _CONTROLLERS.get(it.kind, ("", ""))
    if it.kind == "mpijob" and str(it.obj.get("apiVersion")).endswith("/v2beta1"):
        called = ""  # a job of the MPI operator, whose pods have no fixed labels
    untouched = not it.pods and not refused and it.made[1:] == [] and (it.kind == "vcjob" or not it.obj["status"])
    if called and untouched and not it.cluster.runs(dict([label.split("=")])):
        verb = "do" if called.endswith("s") else "does"
        yield Finding(f"{called} {verb} not run", f"kubectl get pods -A --selector {label}")


def _of_controller(it: Workload, of: Kind, obj: Object) -> Iterable[Finding]:
    if is_suspended(obj):
        yield from _suspended(it, obj, of.resource)
    if of == RAY_JOB:
        yield from ray.waiting(obj)
    if of == RAY_SERVICE:
        yield from ray.serving(it.cluster, obj)
    in_gang = of == VOLCANO_JOB and it.cluster.owned(POD_GROUP, it.namespace, [obj["metadata"]["uid"]])
    if of == VOLCANO_JOB and not it.pods and not in_gang:
        yield from volcano.closed_queue(it.cluster, obj, sure=it.cluster.is_complete)
    if of == JOB and (why := failing(obj)):
        yield Finding(why, f"kubectl describe job {where(obj)}")
