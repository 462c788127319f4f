"""An operator that has no chart: its released manifests, each object a resource of its own."""

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
from components.operators import Site
from config.data.scheduling import SYSTEM_NODES, SYSTEM_PRIORITY, SYSTEM_TOLERATIONS
from operators._lib.release import merge

CHECKSUM = "checksum/config"
"""Of pods, whose operator reads its configuration when it starts: with another one they are others."""
_RUNS_PODS = ("Deployment", "DaemonSet", "StatefulSet")
_FIRST, _SERVICES, _PODS, _CRDS = "first", "services", "pods", "crds"


@dataclass(frozen=True)
class Changes:
    """What a stack has other than it was released."""

    configuration: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Contents of config maps, by their names."""
    arguments: Sequence[str] = ()
    """Of containers, after their own."""
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of containers, over their own."""
    without: Collection[str] = ()
    """Names of CRDs that are left out."""


def install(
    name: str, site: Site, changes: Changes, *, parent: Component, after: Iterable[pulumi.Resource] = ()
) -> list[pulumi.Resource]:
    """The pinned release of an operator, in its namespace; what must be there before it is used.

    Pods follow all that they need to become ready, but for Services, which are waited for until they have pods. CRDs
    come last, so that they go first: their objects have finalizers, which only the operator takes off.
    """
    released = manifests(name, site.settings.charts.source)
    made: dict[str, list[pulumi.Resource]] = {_FIRST: [], _SERVICES: [], _PODS: [], _CRDS: []}
    follows = {_PODS: (_FIRST,), _CRDS: (_PODS, _SERVICES)}
    for step in made:
        before = [site.namespace, *after, *(each for other in follows.get(step, ()) for each in made[other])]
        for each in transformed(released, changes, site.settings.images.registry):
            if _step(each["kind"]) == step:
                made[step].append(_resource(each, parent.child(depends_on=before)))
    return [*made[_PODS], *made[_SERVICES], *made[_CRDS]]


def _step(kind: str) -> str:
    return {"CustomResourceDefinition": _CRDS, "Service": _SERVICES}.get(kind, _PODS if kind in _RUNS_PODS else _FIRST)


def transformed(objects: Iterable[Manifest], changes: Changes, registry: str | None) -> list[Manifest]:
    """Released objects as a stack has them: pods on the system pool, images from the mirror, and the changes.

    Without its namespace, which the program makes. Raises pulumi.RunError where what is changed is not among them.
    """
    names = {(each["kind"], each["metadata"]["name"]) for each in objects}
    wanted = [("ConfigMap", name) for name in changes.configuration]
    wanted += [("CustomResourceDefinition", name) for name in changes.without]
    if missing := sorted(f"{kind} {name}" for kind, name in wanted if (kind, name) not in names):
        what = f"the released manifests have no {', '.join(missing)}: are they of the pinned version?"
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
    """By the SDK's class for its kind, which knows what of it is secret."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    module = importlib.import_module(f"pulumi_kubernetes.{group.partition('.')[0] or 'core'}.{version}")
    properties = {to_snake(key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    made: pulumi.Resource = getattr(module, manifest["kind"])(manifest["metadata"]["name"], **properties, opts=opts)
    return made
