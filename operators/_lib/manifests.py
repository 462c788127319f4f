"""Installs an operator without a chart: each object of its released manifests is a resource."""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import pulumi
from pydantic.alias_generators import to_snake

from components._base import Component
from components.images import mirrored
from components.manifests import Manifest, manifests
from components.operators import InstallContext
from config.data.scheduling import SYSTEM_NODES, SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from operators._lib.release import merge

CHECKSUM = "checksum/config"
"""An annotation with a hash of the configuration. A new hash replaces pods, which only read it when they start."""
_RUNS_PODS = ("Deployment", "DaemonSet", "StatefulSet")
_FIRST, _SERVICES, _PODS, _CRDS = "first", "services", "pods", "crds"


@dataclass(frozen=True)
class Changes:
    configuration: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    """Arguments to append to the containers' arguments in the release."""
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Resources of containers, which override those of the release."""
    without: Collection[str] = ()


def install(
    name: str, context: InstallContext, changes: Changes, *, parent: Component, after: Iterable[pulumi.Resource] = ()
) -> list[pulumi.Resource]:
    """Installs the pinned release of an operator in its namespace. Returns the resources to wait for.

    Pods do not depend on Services, because Pulumi waits until a Service has pods. CRDs are created last and so deleted
    first: only a running operator removes the finalizers of their objects.
    """
    released = manifests(name, context.settings.charts.source)
    made: dict[str, list[pulumi.Resource]] = {_FIRST: [], _SERVICES: [], _PODS: [], _CRDS: []}
    follows = {_PODS: (_FIRST,), _CRDS: (_PODS, _SERVICES)}
    for step in made:
        before = [context.namespace, *after, *(each for other in follows.get(step, ()) for each in made[other])]
        for each in transformed(released, changes, context.settings.images.registry):
            if _step(each["kind"]) == step:
                made[step].append(_resource(each, parent.child(depends_on=before)))
    return [*made[_PODS], *made[_SERVICES], *made[_CRDS]]


def _step(kind: str) -> str:
    return {"CustomResourceDefinition": _CRDS, "Service": _SERVICES}.get(kind, _PODS if kind in _RUNS_PODS else _FIRST)


def transformed(objects: Iterable[Manifest], changes: Changes, registry: str | None) -> list[Manifest]:
    """Returns the released objects with the changes. Pods run on the system pool, with images from the mirror.

    Omits the namespace, which the program creates. Raises pulumi.RunError if the changes name a missing object.
    """
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    wanted = [("ConfigMap", name) for name in changes.configuration]
    wanted += [("CustomResourceDefinition", name) for name in changes.without]
    if missing := sorted(f"{kind} {name}" for kind, name in wanted if (kind, name) not in names):
        what = f"the released manifests have no {', '.join(missing)}. Use the manifests of the pinned version"
        raise pulumi.RunError(what)
    kept = (each for each in objects if each["metadata"]["name"] not in changes.without)
    return [_transformed(each, changes, registry) for each in kept if each["kind"] != "Namespace"]


def _transformed(manifest: Manifest, changes: Changes, registry: str | None) -> Manifest:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    if kind == "ConfigMap" and name in changes.configuration:
        return {**manifest, "data": dict(changes.configuration[name])}
    if kind == "Secret" and not manifest.get("data"):  # with empty data, every update would replace it
        return {key: value for key, value in manifest.items() if key != "data"}
    if kind not in _RUNS_PODS:
        return manifest
    pod = manifest["spec"]["template"]["spec"]
    placed = {
        "priorityClassName": SYSTEM_PRIORITY,
        "nodeSelector": {**pod.get("nodeSelector", {}), **SYSTEM_NODES},
        "tolerations": [*pod.get("tolerations", []), *SYSTEM_TOLERATIONS],
    }
    containers = {
        key: [{**each, "image": mirrored(each["image"], registry)} for each in pod[key]]
        for key in ("initContainers", "containers")
        if key in pod
    }
    if changes.arguments:
        for each in containers["containers"]:
            each["args"] = [*each.get("args", []), *changes.arguments]
    if changes.resources:
        for each in containers["containers"]:
            each["resources"] = merge(each.get("resources", {}), changes.resources)
    template: Manifest = {"spec": {**placed, **containers}}
    if changes.configuration:
        checksum = sha256(json.dumps(changes.configuration, sort_keys=True).encode()).hexdigest()[:16]
        template["metadata"] = {"annotations": {CHECKSUM: checksum}}
    return merge(manifest, {"spec": {"template": template}})


def _resource(manifest: Manifest, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Creates the object with the SDK's class for its kind. Only these classes mark secret fields."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    module = importlib.import_module(f"pulumi_kubernetes.{group.partition('.')[0] or 'core'}.{version}")
    properties = {to_snake(key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    made: pulumi.Resource = getattr(module, manifest["kind"])(manifest["metadata"]["name"], **properties, opts=opts)
    return made
