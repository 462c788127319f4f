"""Names that the plugin chooses (`<logical name>-<8 hex>`), and the annotations that the plugin reads."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from k8s.objects import Object
from simulator.plugins.errors import PluginError
from simulator.plugins.kubernetes.kinds import urn_name
from simulator.plugins.marshal import UNKNOWN
from simulator.plugins.protocol import provider_pb2

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
TIMEOUT = "pulumi.com/timeoutSeconds"
PATCH_FORCE = "pulumi.com/patchForce"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
REPLACE_UNREADY = "pulumi.com/replaceUnready"


def annotation(obj: Mapping[str, Any], name: str) -> str:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    value = annotations.get(name) if isinstance(annotations, Mapping) else None
    return value if isinstance(value, str) else ""


def annotated(obj: Mapping[str, Any], name: str) -> bool:
    return annotation(obj, name) == "true"


def name_of(obj: Mapping[str, Any]) -> Any:
    metadata = obj.get("metadata")
    return UNKNOWN if metadata is UNKNOWN else ((metadata or {}).get("name") or "")


def namespace_of(obj: Mapping[str, Any]) -> Any:
    metadata = obj.get("metadata")
    return UNKNOWN if metadata is UNKNOWN else ((metadata or {}).get("namespace") or "")


def adopt_name(inputs: Object, old: Object) -> None:
    if not name_of(inputs) and annotated(old, AUTONAMED):
        _set_name(inputs, name_of(old))


def assign_name(inputs: Object, urn: str, options: provider_pb2.CheckRequest.AutonamingOptions | None) -> None:
    """Names an object that has no name, following `options`. Raises PluginError if `options` disable naming."""
    if name_of(inputs):
        return
    name = f"{urn_name(urn)}-{uuid.uuid4().hex[:8]}"
    if options is not None:
        if options.mode == provider_pb2.CheckRequest.AutonamingOptions.DISABLE:
            raise PluginError("autonaming is disabled, resource requires the .metadata.name field to be set")
        name = options.proposed_name or name
    _set_name(inputs, name)


def _set_name(inputs: Object, name: str) -> None:
    metadata = inputs.setdefault("metadata", {})
    metadata["name"] = name
    annotations = metadata.setdefault("annotations", {})
    if annotations is not UNKNOWN:
        annotations[AUTONAMED] = "true"
