"""Finds the objects between a workload and its pods, and why one of them cannot create the next.

Events and conditions are those of Kubernetes' controllers (pkg/controller), the training operator 1.9.4
(pkg/controller.v1/control), KubeRay 1.6.2 (ray-operator/controllers/ray/utils/constant.go) and Volcano 1.15.1
(pkg/controllers/job). Volcano and the training operator create a gang's pods only after Volcano has admitted the gang
(DelayPodCreationDueToPodGroup).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from config.data.scheduling import VOLCANO_GROUP
from diagnosis.cluster import APP_WRAPPER, MAKERS, POD, POD_GROUP, RAY_CLUSTER, Cluster, Kind, event_time, owners_of
from diagnosis.finding import Finding, one_line
from diagnosis.messages import cause, is_symptom
from diagnosis.shapes import REPLICA_SPECS
from diagnosis.wrappers import wrapped_pods
from k8s.objects import Object, condition, is_ready
from k8s.quantities import count

_CREATION = re.compile(r"^Failed(To)?Create|^(PodGroup|Plugin|PVC|JobStatus)Error$|^Invalid")
"""Reasons of events about failed creations, also of normal events."""
_SYMPTOM = re.compile(r"^PodGroupPending$|Delete|Restarting$|^BackoffLimitExceeded$|^Unhealthy$")
"""Reasons of warnings that do not explain missing pods. The cause of PodGroupPending is in the PodGroup."""
_CAUSE = re.compile(r"forbidden|denied|exceeded quota|not found|invalid|no matches for kind|already exists")
_LASTING = re.compile(
    r"\bis invalid\b|no matches for kind|^Invalid|usage per (Pod|Container) is|violates PodSecurity"
    r"|failed quota: \S+ must specify|because it is being terminated|no PriorityClass with name|PodNodeSelector: "
    r"|serviceaccount \"(?!default\")[^\"]+\" not found|webhook \"[^\"]*(gatekeeper|kyverno)[^\"]*\" denied"
)
_QUOTA = re.compile(r"exceeded quota: \S+, requested: (\S+), used: \S+, limited: (\S+)")
"""Message of a ResourceQuota (staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go)."""


def chain(cluster: Cluster, namespace: str, uid: str) -> list[tuple[Kind, Object]]:
    found: dict[str, tuple[Kind, Object]] = {}
    owners = {uid}
    while owners:
        made = [(kind, each) for kind in MAKERS for each in cluster.owned(kind, namespace, owners)]
        made += [(kind, each) for kind, each in cluster.others(namespace) if owners_of(each) & owners]
        new = {each["metadata"]["uid"]: (kind, each) for kind, each in made}
        new = {key: each for key, each in new.items() if key not in found and key != uid}
        found, owners = found | new, set(new)
    return list(found.values())


def makers_of(cluster: Cluster, namespace: str, uid: str) -> list[str]:
    return [uid, *(each["metadata"]["uid"] for _, each in chain(cluster, namespace, uid))]


def pods_of(cluster: Cluster, namespace: str, uid: str) -> list[Object]:
    makers = set(makers_of(cluster, namespace, uid))
    owned = [pod for pod in cluster.all(POD, namespace) if pod["metadata"]["uid"] == uid or owners_of(pod) & makers]
    wrappers = [each for each in cluster.all(APP_WRAPPER, namespace) if each["metadata"]["uid"] == uid]
    return [*owned, *(pod for each in wrappers for pod in wrapped_pods(cluster, each) if pod not in owned)]


def refusals(cluster: Cluster, made: Sequence[tuple[Kind, Object]], pods: Sequence[Object]) -> Iterator[Finding]:
    for kind, maker in made:
        if kind == POD:  # a pod's events are about its containers
            continue
        mine = [pod for pod in pods if maker["metadata"]["uid"] in owners_of(pod)]
        found = ("", _of_ray(kind, maker, mine if kind == RAY_CLUSTER else pods))
        found = found if found[1] else _condition(maker)
        reason, message = found if found[1] else _event(cluster, maker, mine, alone=not pods)
        if message:
            lasts = bool(_LASTING.search(message) or _LASTING.search(reason)) or _exceeds_alone(message)
            look = f"kubectl get events -n {maker['metadata']['namespace']}"
            yield Finding(one_line(message), look, lasts=lasts)


def _exceeds_alone(message: str) -> bool:
    found = _QUOTA.search(message)
    asked, most = (dict(re.findall(r"([^,=\s]+)=([^,\s]+)", part)) for part in found.groups()) if found else ({}, {})
    return any(count(value) > count(most[name]) for name, value in asked.items() if name in most)


def _condition(maker: Object) -> tuple[str, str]:
    """Reads a failure from the status, which is current, and stays longer than events."""
    failure = condition(maker, "ReplicaFailure")
    return (failure.get("reason", ""), failure.get("message", "")) if failure.get("status") == "True" else ("", "")


def _of_ray(kind: Kind, maker: Object, pods: Sequence[Object]) -> str:
    """Returns the error of a RayCluster, from its own status or from the copy in a RayJob or RayService; empty without
    error.

    Unless the state is `failed`, ignores the error while pods start, because it may be obsolete.
    """
    status = maker["status"]
    owners = (status, status.get("pendingServiceStatus", {}), status.get("activeServiceStatus", {}))
    for each in [status] if kind == RAY_CLUSTER else [owner.get("rayClusterStatus", {}) for owner in owners]:
        failed = each.get("state") == "failed" or (each.get("state") != "ready" and all(map(is_ready, pods)))
        if failed and each.get("reason"):
            return str(each["reason"])
    return ""


def _event(cluster: Cluster, maker: Object, pods: Sequence[Object], *, alone: bool) -> tuple[str, str]:
    newest = max((pod["metadata"].get("creationTimestamp", "") for pod in pods), default="")
    reasons = [
        (event["reason"], cause(event["message"]))
        for event in cluster.events(maker)
        if event_time(event) > newest and _explains(event, alone=alone)
    ]
    ranked = [each for each in reasons if each[1].strip()]
    return max(reversed(ranked), key=_rank, default=("", ""))


def _explains(event: Object, *, alone: bool) -> bool:
    if _SYMPTOM.search(event["reason"]):
        return False
    return bool(_CREATION.search(event["reason"])) or (alone and event.get("type") == "Warning")


def _rank(reason: tuple[str, str]) -> tuple[bool, bool]:
    return bool(_CAUSE.search(reason[1])), not is_symptom(reason[1])


def templates(cluster: Cluster, workload: Object) -> list[Object]:
    spec, uid, namespace = workload["spec"], workload["metadata"]["uid"], workload["metadata"]["namespace"]
    groups = [group["metadata"]["name"] for group in cluster.all(POD_GROUP, namespace) if uid in owners_of(group)]
    ranks = [rank for name in REPLICA_SPECS for rank in spec.get(name, {}).values()] if groups else []
    single = [{"replicas": spec.get("parallelism", 1), **spec}] if "template" in spec else ranks
    pods = []
    for task in spec.get("tasks", single):
        annotations = task["template"].get("metadata", {}).get("annotations", {})
        metadata = {
            "uid": "",
            "name": workload["metadata"]["name"],
            "namespace": namespace,
            "annotations": {VOLCANO_GROUP: groups[0]} | annotations if groups else annotations,
        }
        pod = {"metadata": metadata, "spec": {"schedulerName": spec.get("schedulerName"), **task["template"]["spec"]}}
        pods += [pod] * int(task.get("replicas", 1))
    return pods
