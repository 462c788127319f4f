"""Builds objects of a cluster from YAML entries.

An entry calls a function of `objects.py`, such as `{worker: train-0, on: a}`, and merges the patch under `with`.
`object` has a complete object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from diagnosis.cluster import POD, Cluster, Kind
from k8s.objects import Object
from tests.unit.diagnosis import objects as make

Made = tuple[Kind, Object]
BUILDERS: Mapping[str, Callable[..., tuple[Kind, Object]]] = {
    "pod": make.pod,
    "worker": make.worker,
    "driverPod": make.driver_pod,
    "node": make.node,
    "job": make.job,
    "vcjob": make.volcano_job,
    "pytorchjob": make.pytorch_job,
    "appwrapper": make.app_wrapper,
    "daemonSet": make.daemon_set,
    "rayjob": lambda name, **fields: make.ray_job(**fields),
    "clusterPolicy": make.cluster_policy,
    "nicPolicy": make.nic_policy,
    "queued": make.queued,
    "podGroup": make.group,
}
TEMPLATES = {"<worker>": make.worker("x")[1], "<spec of worker>": make.worker("x")[1]["spec"]}


def merged(target: Any, patch: Any) -> Any:
    """Returns the target after an RFC 7396 merge patch, in which texts may stand for templates of pods."""
    if isinstance(patch, str) and patch in TEMPLATES:
        return TEMPLATES[patch]
    if isinstance(patch, list):
        return [merged(None, each) for each in patch]
    if not isinstance(patch, dict):
        return patch
    old = target if isinstance(target, dict) else {}
    changed = {key: merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in {**old, **changed}.items() if key not in patch or patch[key] is not None}


def built(entry: Mapping[str, Any], made: Iterable[Made]) -> Made:
    """An event is about one of the objects in `made`."""
    fields = {key: value for key, value in entry.items() if key != "with"}
    what = next(iter(fields))
    name = fields.pop(what)
    if what == "object":
        return Kind(name["apiVersion"], name["kind"], ""), name
    if what == "event":
        of, at = fields["of"], {"at": fields["at"]} if "at" in fields else {}
        about = next(
            obj for kind, obj in made if of in (obj["metadata"]["name"], f"{kind.name}/{obj['metadata']['name']}")
        )
        kind, obj = make.event((POD, about), name, fields["message"], **at)
    else:
        waiting = make.waiting(*fields.pop("waiting")) if "waiting" in fields else {}
        kind, obj = BUILDERS[what](name, **fields, **waiting)
    return kind, merged(obj, entry.get("with", {}))


def cluster(entries: Iterable[Mapping[str, Any]], *, volcano: bool = True) -> Cluster:
    """Returns a cluster with these objects, their nodes, and a running Volcano if `volcano`."""
    made: list[Made] = []
    for entry in entries:
        made.append(built(entry, made))
    return make.cluster(*made, has_volcano=volcano)
