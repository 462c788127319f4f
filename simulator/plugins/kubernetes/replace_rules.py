"""Immutable properties by kind. A change of such a property replaces the object.

Rules: pulumi/pulumi-kubernetes v4.34, provider/pkg/provider/diff.go. A path is a tuple of names; `*` matches every
item of a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.plugins.kubernetes.kinds import kind_of

Path = tuple[str | int, ...]
Pattern = tuple[str, ...]


def _paths(*dotted: str) -> tuple[Pattern, ...]:
    return tuple(tuple(path.split(".")) for path in dotted)


def _under(prefix: str, names: str) -> tuple[Pattern, ...]:
    return _paths(*(f"{prefix}.{name}" for name in names.split()))


_IDENTITY = _paths("metadata.name", "metadata.namespace")
_SELECTOR = _paths("spec.selector")
_VOLUME_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs "
    "hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
_POD = (
    "affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostNetwork "
    "hostPID hostname imagePullSecrets nodeName nodeSelector overhead preemptionPolicy priority priorityClassName "
    "readinessGates restartPolicy runtimeClassName schedulerName securityContext serviceAccount serviceAccountName "
    "shareProcessNamespace subdomain terminationGracePeriodSeconds volumes"
)
_CONTAINER = (
    "args command env image imagePullPolicy lifecycle livenessProbe ports readinessProbe resources securityContext "
    "stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_ROLE_BINDING = _paths("roleRef")

_RULES: dict[tuple[str, str], tuple[Pattern, ...]] = {
    ("apps/v1", "DaemonSet"): _SELECTOR,
    ("apps/v1", "Deployment"): _SELECTOR,
    ("apps/v1", "StatefulSet"): _paths(
        "spec.podManagementPolicy",
        "spec.revisionHistoryLimit",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch/v1", "Job"): _paths("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _ROLE_BINDING,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _ROLE_BINDING,
    ("storage.k8s.io/v1", "StorageClass"): _paths("parameters", "provisioner"),
    ("v1", "PersistentVolume"): _under("spec", _VOLUME_SOURCES),
    ("v1", "PersistentVolumeClaim"): _paths(
        "spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"
    ),
    ("v1", "Pod"): (
        *_under("spec", _POD),
        *_under("spec.containers.*", _CONTAINER),
        *_under("spec.initContainers.*", _CONTAINER),
    ),
    ("v1", "ResourceQuota"): _paths("spec.scopes"),
    ("v1", "Secret"): _paths("type"),
    ("v1", "Service"): _paths("spec.clusterIP"),
}


def replace_patterns(
    obj: dict[str, Any], *, config_map_mutable: bool, secret_mutable: bool, patch: bool
) -> tuple[Pattern, ...]:
    """Returns the immutable properties of the object: for a Patch resource, only name and namespace."""
    kind = kind_of(obj)
    if patch:
        return _IDENTITY
    immutable = obj.get("immutable") is True
    if (kind.api_version, kind.name) == ("v1", "Secret") and (immutable or not secret_mutable):
        return (*_IDENTITY, *_paths("type", "stringData", "data"))
    if (kind.api_version, kind.name) == ("v1", "ConfigMap") and (immutable or not config_map_mutable):
        return (*_IDENTITY, *_paths("binaryData", "data"))
    return (*_IDENTITY, *_RULES.get((kind.api_version, kind.name), ()))


def replaces(path: Path, value: Any, patterns: Sequence[Pattern]) -> bool:
    """Returns whether `path` is at or below one of the `patterns`, or the new `value` contains such a path."""
    return any(_touches(path, value, pattern) for pattern in patterns)


def _touches(path: Path, value: Any, pattern: Pattern) -> bool:
    for position, name in enumerate(pattern):
        if position >= len(path):
            return _holds(value, pattern[position:])
        step = path[position]
        if step != name and not (name == "*" and isinstance(step, int)):
            return False
    return True


def _holds(value: Any, pattern: Pattern) -> bool:
    if not pattern:
        return True
    name, rest = pattern[0], pattern[1:]
    if name == "*":
        return isinstance(value, list) and any(_holds(item, rest) for item in value)
    return isinstance(value, dict) and name in value and _holds(value[name], rest)
