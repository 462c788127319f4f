"""Types of Pulumi resources and their Kubernetes kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RELEASE_TYPE = "kubernetes:helm.sh/v3:Release"
# Groups that every API server has. The official plugin has Go types for their objects, and normalizes the objects
# (normalize.py).
_BUILT_IN_GROUPS = {
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
    "events.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io",
    "policy", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    name: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def built_in(self) -> bool:
        return not self.group or self.group in _BUILT_IN_GROUPS


def kind_of_urn(urn: str) -> Kind:
    """Returns apps/v1, Deployment for `...$kubernetes:apps/v1:Deployment::name`. Raises ValueError for other types."""
    token = urn_type(urn)
    _, group_version, name = token.split(":")
    group, slash, version = group_version.rpartition("/")
    if not slash:
        raise ValueError(f'the type "{token}" is not a Kubernetes type: use <package>:<group>/<version>:<kind>')
    return Kind("" if group == "core" else group, version, name)


def kind_of(obj: Mapping[str, Any]) -> Kind:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return Kind("" if group == "core" else group, version, str(obj.get("kind", "")))


def urn_type(urn: str) -> str:
    return urn.split("::")[2].split("$")[-1]


def urn_name(urn: str) -> str:
    return urn.split("::", 3)[3]


def is_patch(urn: str, obj: Mapping[str, Any]) -> bool:
    """Returns whether the resource (such as ConfigMapPatch) manages only some fields of an object."""
    return urn_type(urn).split(":")[-1] == f"{obj.get('kind')}Patch"


def is_crd(obj: Mapping[str, Any]) -> bool:
    return kind_of(obj).group == "apiextensions.k8s.io" and obj.get("kind") == "CustomResourceDefinition"


def identity(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def parse_identity(text: str) -> tuple[str | None, str]:
    namespace, slash, name = text.partition("/")
    return (namespace, name) if slash else (None, namespace)
