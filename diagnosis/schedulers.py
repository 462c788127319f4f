"""Reports schedulers' messages on pods without a node: what pods lack, states of gangs, and scheduling gates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from config.data.near import hint, near
from config.data.scheduling import COSCHEDULER, VOLCANO
from diagnosis import kueue, volcano
from diagnosis.cluster import POD, Cluster, event_time, where
from diagnosis.finding import Finding, grouped, listed, one_line
from k8s.objects import Object, condition

_SCHEDULERS = {
    VOLCANO: ("Volcano's scheduler", ("app", "volcano-scheduler")),
    COSCHEDULER: ("the scheduler of scheduler-plugins", ("component", "scheduler")),
}
_DEFAULT = "default-scheduler"
_GATED = "SchedulingGated"
"""The API server's reason for new pods with scheduling gates (pkg/registry/core/pod/strategy.go)."""
_FAILED = "FailedScheduling"
_FITS = "can possibly be assigned to"
"""Volcano's text in conditions and events of a pod that would fit if the rest of its gang did (api/job_info.go)."""
_NODES = re.compile(r"0/\d+ nodes ")
"""Prefix of a single pod's placement message, in Kubernetes' scheduler and Volcano."""
_ORIGIN = "Origin reason is "
"""Text in Volcano's messages on gangs (api/job_info.go, FitError). After it, the message names what a pod lacks."""
_GANG = re.compile(
    "pod group is not ready"
    "|cannot find enough sibling pods|optimistic rejection in PostFilter|rejection in Unreserve|due to timeout after"
)
"""Messages with only a gang's state, from Volcano and Coscheduling (scheduler-plugins' pkg/coscheduling)."""
_NO_PODS = re.compile(r"\d+/0 tasks in gang unschedulable: (?!.*Origin reason is )")
"""Volcano's message for a gang that has no pods yet (cache.go, RecordJobStatusEvent). It contains no cause."""
_KUEUES = "kueue.x-k8s.io/"


def off(cluster: Cluster, pod: Object) -> Finding | None:
    name = pod["spec"].get("schedulerName") or _DEFAULT
    if name not in _SCHEDULERS:
        return None if name == _DEFAULT else _unknown(cluster, pod, name)
    called, (label, value) = _SCHEDULERS[name]
    if cluster.runs({label: value}):
        return None
    return Finding(f"{called} does not run", f"kubectl get pods -A --selector {label}={value}")


def _unknown(cluster: Cluster, pod: Object, name: str) -> Finding | None:
    placed = {
        each["spec"].get("schedulerName") or _DEFAULT for each in cluster.all(POD) if each["spec"].get("nodeName")
    }
    evaluated = condition(pod, "PodScheduled").get("reason", _GATED) != _GATED
    failed = any(event["reason"] == _FAILED for event in cluster.events(pod))
    if not cluster.is_complete or name in placed or evaluated or failed:
        return None
    run = [each for each, (_, (label, value)) in _SCHEDULERS.items() if cluster.runs({label: value})]
    known = sorted({_DEFAULT, *placed, *run})
    why = f"no scheduler has handled pod {pod['metadata']['name']} (schedulerName {name}){hint(near(name, known))}"
    again = f"create the pod again with schedulerName {' or '.join(known)}"
    return Finding(why, f"kubectl describe pod {where(pod)}    # {again}")


def gates(pod: Object) -> tuple[str, ...]:
    return tuple(str(gate.get("name")) for gate in pod["spec"].get("schedulingGates", []))


def gated(cluster: Cluster, pods: Sequence[Object]) -> Iterator[Finding]:
    for names, found in grouped((gates(pod), pod) for pod in pods).items():
        if any(name.startswith(_KUEUES) for name in names) and (held := kueue.held(cluster, found[0])):
            yield from held
            continue
        what = listed([pod["metadata"]["name"] for pod in found], "pod")
        why = f"{what} {'has' if len(found) == 1 else 'have'} {listed(names, 'scheduling gate')}, which its controller"
        yield Finding(one_line(f"{why} has not removed yet"), f"kubectl describe pod {where(found[0])}")


def explain(cluster: Cluster, pods: Sequence[Object], *, known: bool) -> list[Finding]:
    """Returns the scheduler's message on the pods, or on their PodGroup before the pods exist.

    If another finding shows the cause (`known`), omits the state of a gang, because it changes with each read.
    """
    group = volcano.gang(cluster, pods[0])
    if closed := volcano.closed_queue(cluster, group):
        return closed
    on_pods = [condition(pod, "PodScheduled") for pod in pods]
    messages = _causes(entry for entry in on_pods if entry.get("status") == "False")
    messages = messages or _before(cluster, pods)
    messages = messages or [words for words in volcano.messages_of(cluster, group) if not _NO_PODS.match(words)][-1:]
    messages = [message.rpartition(_ORIGIN)[2] for message in messages]
    if not messages:
        return []
    messages.sort(key=lambda message: (bool(_GANG.search(message)), not _NODES.match(message)))
    refused = volcano.refusal(cluster, group, messages[0], known=known)
    if refused is not None:
        return refused
    if _GANG.search(messages[0]):
        if known:
            return []
        messages = [*_before(cluster, pods), *messages]
    return [Finding(one_line(f"the scheduler reports: {messages[0]}"))]


def _before(cluster: Cluster, pods: Sequence[Object]) -> list[str]:
    """Returns what a pod last lacked, from events: Coscheduling overwrites the condition with the gang's state."""
    failed = [event for pod in pods for event in cluster.events(pod) if event.get("reason") == _FAILED]
    return [message for message in _causes(sorted(failed, key=event_time)) if not _GANG.search(message)][-1:]


def _causes(entries: Iterable[Object]) -> list[str]:
    messages = (entry.get("message", "") for entry in entries)
    return [message for message in messages if message and _FITS not in message]
