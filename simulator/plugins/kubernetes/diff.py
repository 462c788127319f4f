"""Diff of an object: compares the new inputs with the live object, reduced to the fields of the old inputs.

The diff shows drift that a refresh found, but not values that the API server filled in.
"""

from __future__ import annotations

import copy

from k8s.objects import Object
from simulator.kube.client import ApiError
from simulator.plugins.kubernetes import naming
from simulator.plugins.kubernetes.checkpoint import parse, prune, to_object
from simulator.plugins.kubernetes.engine import WARNING
from simulator.plugins.kubernetes.kinds import is_patch, kind_of
from simulator.plugins.kubernetes.normalize import drops_empty, normalize
from simulator.plugins.kubernetes.replace_rules import replace_patterns
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.kubernetes.structural import compare, ignored, path_text, replacing
from simulator.plugins.marshal import UNKNOWN, decode
from simulator.plugins.protocol import provider_pb2

DiffResponse = provider_pb2.DiffResponse


def diff(session: Session, request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
    old_inputs, live = parse(decode(request.olds))
    new = normalize(to_object(decode(request.news)))
    shape = normalize(old_inputs)
    old = normalize(prune(live, shape, drops_empty=drops_empty(shape)))
    _settle_identity(session, old, new, live)
    patterns = replace_patterns(
        new,
        config_map_mutable=session.options.config_map_mutable,
        secret_mutable=session.options.secret_mutable,
        patch=is_patch(request.urn, new),
    )
    found = compare(old, new, patterns)
    changes = {path: change for path, change in found.items() if not ignored(path, request.ignoreChanges)}
    replaces = replacing(changes)
    if naming.annotated(new, naming.REPLACE_UNREADY) and _unready(session, request.urn, live):
        replaces.append(f'.metadata.annotations["{naming.REPLACE_UNREADY}"]')
    return DiffResponse(
        changes=DiffResponse.DIFF_SOME if changes or replaces else DiffResponse.DIFF_NONE,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and _keeps_its_name(new, live),
        detailedDiff={path_text(path): change for path, change in changes.items()},
        hasDetailedDiff=True,
    )


def _settle_identity(session: Session, old: Object, new: Object, live: Object) -> None:
    namespaced = session.namespaced(kind_of(new))
    for obj in (old, new):
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            continue
        if namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
        else:
            metadata.pop("namespace", None)
    for field in ("apiVersion", "kind"):
        old.setdefault(field, new.get(field))
    if naming.name_of(new) and isinstance(old.get("metadata"), dict):
        old["metadata"] = copy.copy(old["metadata"]) | {"name": naming.name_of(live)}


def _keeps_its_name(new: Object, live: Object) -> bool:
    """Returns whether the user chose the name and keeps it. The old object must then be deleted first."""
    name = naming.name_of(new)
    return (
        bool(name)
        and name is not UNKNOWN
        and not naming.annotated(new, naming.AUTONAMED)
        and name == naming.name_of(live)
        and naming.namespace_of(new) == naming.namespace_of(live)
    )


def _unready(session: Session, urn: str, live: Object) -> bool:
    if live.get("kind") != "Job":
        session.engine.log(urn, "replaceUnready annotation is not supported for this resource", WARNING)
        return False
    if session.client is None:
        session.engine.log(urn, "Cluster is unreachable, skipping replaceUnready check", WARNING)
        return False
    try:
        job = session.kube.get(live["apiVersion"], "Job", naming.name_of(live), naming.namespace_of(live))
    except ApiError:
        return False
    conditions = job.get("status", {}).get("conditions") or []
    return not any(item["type"] == "Complete" and item["status"] == "True" for item in conditions)
