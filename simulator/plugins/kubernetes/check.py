"""Check: adds missing name, namespace, apiVersion and kind to the inputs of an object, and normalizes them."""

from __future__ import annotations

from k8s.objects import Object
from simulator.plugins.errors import PluginError
from simulator.plugins.kubernetes import naming
from simulator.plugins.kubernetes.checkpoint import to_object, to_properties
from simulator.plugins.kubernetes.engine import WARNING
from simulator.plugins.kubernetes.kinds import is_crd, is_patch, kind_of_urn, urn_type
from simulator.plugins.kubernetes.normalize import normalize
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.marshal import UNKNOWN, Properties, decode
from simulator.plugins.protocol import provider_pb2


def check(session: Session, request: provider_pb2.CheckRequest) -> Properties:
    """Returns the completed inputs. The API server validates their values, in a preview by a dry run."""
    given, old = decode(request.news), to_object(decode(request.olds))
    kind = kind_of_urn(request.urn)
    if kind.built_in and urn_type(request.urn).endswith("List"):
        raise PluginError(
            "list resources exist for compatibility with YAML manifests and Helm charts, and cannot be created "
            "directly. Use the underlying resource type instead"
        )
    inputs = normalize(to_object(given))
    if naming.annotation(inputs, naming.WAIT_FOR):
        raise PluginError(f"the annotation {naming.WAIT_FOR} needs the official kubernetes plugin")
    _name(request, inputs, old)
    _warn(session, request.urn, given)
    metadata = inputs.setdefault("metadata", {})
    if metadata is not UNKNOWN and not metadata.get("namespace") and session.namespaced(kind):
        metadata["namespace"] = session.namespace
    if is_crd(inputs):
        session.remember_crd(inputs)
    return to_properties(inputs, given)


def _name(request: provider_pb2.CheckRequest, inputs: Object, old: Object) -> None:
    if is_patch(request.urn, inputs) and not naming.name_of(inputs):
        raise PluginError("patch resources require the `.metadata.name` field to be set")
    if not naming.name_of(inputs) and (inputs.get("metadata") or {}).get("generateName"):
        raise PluginError("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
    if old:
        naming.adopt_name(inputs, old)
    else:
        options = request.autonaming if request.HasField("autonaming") else None
        naming.assign_name(inputs, request.urn, options)


def _warn(session: Session, urn: str, given: Properties) -> None:
    if naming.annotation(to_object(given), naming.AUTONAMED):
        session.engine.log(urn, f'ignoring user-specified value for internal annotation "{naming.AUTONAMED}"', WARNING)
