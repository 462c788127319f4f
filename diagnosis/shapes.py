"""The fields of Kubernetes objects that a diagnosis reads, and their types.

Other people's objects have nulls, lack fields, or have values of another type, since many custom resources accept
anything. `shaped` removes what does not fit once, when objects are read, so that no other module has to expect it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

TIME = "time"
"""RFC 3339 with its zone, as the API server writes times."""
COUNT = "count"
"""A number of pods; a template may ask for more than anyone can list."""
_MOST_PODS = 100_000
ANY = object()
"""A value whose readers accept everything: quantities, and objects that are only compared."""

_TEXTS = {"*": str}
_CONDITIONS = [{"type!": str, "status!": str, "reason": str, "message": str, "lastTransitionTime": TIME}]
_METADATA = {
    "name!": str,
    "namespace!": str,
    "uid!": str,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "creationTimestamp": TIME,
    "deletionTimestamp": TIME,
    "finalizers": [str],
    "ownerReferences": [{"uid!": str, "kind!": str, "name!": str, "apiVersion": str}],
    "managedFields": [{"manager!": str, "fieldsV1": {"f:spec": dict}}],
}
_RESOURCES = {"requests": {"*": ANY}, "limits": {"*": ANY}}
_CONTAINERS = [{"name!": str, "image": str, "restartPolicy": str, "resources": _RESOURCES}]
_EXPRESSIONS = [{"key!": str, "operator!": str, "values": [str]}]
_REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}]}
_POD_SPEC = {
    "nodeName": str,
    "schedulerName": str,
    "nodeSelector": _TEXTS,
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _REQUIRED}},
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "schedulingGates": [{"name!": str}],
    "containers!": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "imagePullSecrets": [{"name!": str}],
    "volumes": [{"name!": str, "persistentVolumeClaim": {"claimName!": str}}],
}
_TEMPLATE = {"metadata": {"labels": _TEXTS, "annotations": _TEXTS}, "spec!": _POD_SPEC}
_ENDED = {"exitCode": int, "reason": str, "message": str, "finishedAt": TIME}
_STATE = {"waiting": {"reason": str, "message": str}, "terminated": _ENDED, "running": dict}
_STATUSES = [{"name!": str, "image!": str, "restartCount": int, "state": _STATE, "lastState": _STATE}]
REPLICA_SPECS = tuple(f"{name}ReplicaSpecs" for name in ("pytorch", "tf", "mpi", "xgb", "paddle", "jax"))
"""Fields of the jobs of the training operator, one for each kind."""
_SPEC = {
    "active": bool,
    "suspend": bool,
    "runPolicy": {"suspend": bool},
    "rayClusterConfig": {"suspend": bool},
    "schedule": str,
    "updateStrategy": {"type": str, "rollingUpdate": {"partition": int}},
    "parallelism": COUNT,
    "replicas": COUNT,
    "backoffLimit": int,
    "backoffLimitPerIndex": int,
    "maxRetry": int,
    "minResources": {"*": ANY},
    "queue": str,
    "queueName": str,
    "schedulerName": str,
    "template": _TEMPLATE,
    **{name: {"*": {"replicas": COUNT, "template!": _TEMPLATE}} for name in REPLICA_SPECS},
    "podSets": [{"template!": _TEMPLATE}],
    "tasks": [{"name": str, "replicas": COUNT, "template!": _TEMPLATE}],
    "resourceGroups": [{"flavors": [{"resources": [{"name!": str, "nominalQuota": ANY, "lendingLimit": ANY}]}]}],
}
_APPLICATION = {"status": str, "message": str, "serveDeploymentStatuses": {"*": {"status": str, "message": str}}}
_RAY_CLUSTER = {"rayClusterStatus": {"state": str, "reason": str}}
_SERVING = {
    "rayClusterName": str,
    "trafficRoutedPercent": int,
    "applicationStatuses": {"*": _APPLICATION},
    **_RAY_CLUSTER,
}
_STATUS = {
    "conditions": _CONDITIONS,
    **_RAY_CLUSTER,
    "serviceStatus": str,
    "activeServiceStatus": _SERVING,
    "pendingServiceStatus": _SERVING,
    "lastScheduleTime": TIME,
    "phase": str,
    "reason": str,
    "message": str,
    "failed": int,
    "replicas": int,
    "readyReplicas": int,
    "desiredNumberScheduled": int,
    "numberReady": int,
    "updatedReplicas": int,
    "unavailableReplicas": int,
    "currentRevision": str,
    "updateRevision": str,
    "ready": int,
    "jobDeploymentStatus": str,
    "jobStatus": str,
    "resettingCount": int,
    "retryCount": int,
    "componentStatus": [{"kind": str, "conditions": _CONDITIONS, "podSets": [{"replicas": COUNT}]}],
    "requeueState": {"count": int, "requeueAt": TIME},
    "admissionChecks": [{"name!": str, "state!": str, "message": str}],
}
_OBJECT: dict[str, Any] = {"metadata!": _METADATA, "spec!": _SPEC, "status!": _STATUS}
"""Fields of all workloads and queues together: no two of them use a name for different types, but `state`."""
_STATES = {**_STATUS, "state": str}
_KINDS: dict[str, dict[str, Any]] = {
    "Pod": {
        "spec!": _POD_SPEC,
        "status!": {
            "phase": str,
            "reason": str,
            "message": str,
            "startTime": TIME,
            "conditions": _CONDITIONS,
            "containerStatuses": _STATUSES,
            "initContainerStatuses": _STATUSES,
        },
    },
    "Node": {
        "spec!": {"unschedulable": bool, "taints": [{"key!": str, "effect!": str, "value": str, "timeAdded": TIME}]},
        "status!": {
            "conditions": _CONDITIONS,
            "capacity": {"*": ANY},
            "allocatable": {"*": ANY},
            "nodeInfo": {"kubeletVersion": str},
        },
    },
    "Event": {
        "involvedObject!": {"apiVersion": str, "uid": str, "kind": str, "name": str, "namespace": str},
        "reason!": str,
        "message!": str,
        "type": str,
        "lastTimestamp": TIME,
        "eventTime": TIME,
        "series": {"lastObservedTime": TIME},
    },
    "ConfigMap": {"data": _TEXTS},
    "DaemonSet": {"spec!": {"template!": _TEMPLATE, "updateStrategy": {"type": str}}},
    "Job": {"status!": {**_STATUS, "state": {"phase": str, "reason": str, "message": str}}},
    "RayCluster": {"status!": _STATES},
    "Queue": {"spec!": {"capability": {"*": ANY}}, "status!": _STATES},
    "NicClusterPolicy": {
        "spec!": {
            "devicePlugin": {"enabled": bool},
            "sriovDevicePlugin": {"config": str},
            "rdmaSharedDevicePlugin": {"config": str},
        },
        "status!": {**_STATES, "appliedStates": [{"name!": str, "state!": str, "message": str}]},
    },
}
_NEW_EVENT = {"note": "message", "regarding": "involvedObject", "deprecatedLastTimestamp": "lastTimestamp"}
"""Fields of events.k8s.io/v1 and what core/v1 calls them (staging/src/k8s.io/api/events/v1/types.go)."""
_KINDS["ClusterPolicy"] = _KINDS["NicClusterPolicy"]


def shaped(kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an object of a kind without nulls and without values of other types; fields that each has are there."""
    shape = {**_OBJECT, **_KINDS.get(kind, {})}
    if kind == "Event":
        obj = {**obj, **{core: obj[new] for new, core in _NEW_EVENT.items() if obj.get(new) and not obj.get(core)}}
    found: dict[str, Any] = fit(obj, shape)
    if not found["metadata"]["uid"]:
        found["metadata"]["uid"] = f"{kind}/{found['metadata']['namespace']}/{found['metadata']['name']}"
    return found


def fit(value: Any, shape: Any) -> Any:
    """Returns the value as its shape has it, or None where it is of another type."""
    if isinstance(shape, dict):
        return _fit_map(value, shape) if isinstance(value, dict) else None
    if isinstance(shape, list):
        return (
            [kept for item in value if (kept := fit(item, shape[0])) is not None] if isinstance(value, list) else None
        )
    if shape is TIME:
        return value if isinstance(value, str) and _is_time(value) else None
    if shape is COUNT:
        return min(value, _MOST_PODS) if isinstance(value, int) else None
    return value if shape is ANY or (isinstance(value, shape) and shape in (bool, type(value))) else None


def _is_time(text: str) -> bool:
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _fit_map(value: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    if "*" in shape:
        fits = {key: fit(item, shape["*"]) for key, item in value.items()}
        return {key: item for key, item in fits.items() if item is not None}
    found = {}
    for key, item in value.items():
        below = shape.get(key, shape.get(f"{key}!"))
        kept = _without_nulls(item) if below is None else fit(item, below)
        if kept is not None:
            found[key] = kept
    for name, below in shape.items():
        if name[-1] == "!" and name[:-1] not in found:
            found[name[:-1]] = fit("" if below is str else type(below)(), below)
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
