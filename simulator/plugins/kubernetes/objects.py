"""Create, Read, Update and Delete of objects."""

from __future__ import annotations

from typing import Any

from k8s.objects import Object
from simulator.kube.client import ApiError, NoKindMatch
from simulator.plugins.errors import InitializationFailed, PluginError
from simulator.plugins.kubernetes import apply, awaiters, naming
from simulator.plugins.kubernetes.awaiters.base import AwaitFailed
from simulator.plugins.kubernetes.checkpoint import API_VERSION, checkpoint, field_manager, parse, prune, to_object
from simulator.plugins.kubernetes.kinds import identity, is_crd, is_patch, kind_of, kind_of_urn, parse_identity
from simulator.plugins.kubernetes.normalize import normalize
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.marshal import Properties, decode, has_unknown
from simulator.plugins.protocol import provider_pb2

_NOT_IMPORTED = ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")


def create(session: Session, request: provider_pb2.CreateRequest) -> tuple[str, Properties]:
    """Creates an object. Returns its id (empty in a preview) and its state."""
    given = decode(request.properties)
    inputs = to_object(given)
    if request.preview and _cannot_preview(session, request.urn, inputs):
        return "", given
    manager = field_manager({}, inputs)
    try:
        made = apply.create(session, request.urn, inputs, manager, preview=request.preview)
    except apply.NamespaceMissing:
        return "", given
    except NoKindMatch as error:
        raise PluginError(_no_kind("creation", request.urn, error)) from error
    except ApiError as error:
        if request.preview and (error.code == 403 or error.reason == "AlreadyExists"):
            return "", given
        raise PluginError(
            f'resource "{request.urn}" was not successfully created by the Kubernetes API server: {error}'
        ) from error

    def state(live: Object) -> Properties:
        return checkpoint(inputs, live, given, manager, inputs.get("apiVersion", ""))

    if request.preview:
        made.pop("status", None)
        return "", state(made)
    if is_crd(inputs):
        session.remember_crd(inputs)
    name = _identity(made)
    try:
        live = awaiters.until_ready(session, request.urn, inputs, made, None, request.timeout)
    except AwaitFailed as error:
        message = (
            f'resource "{request.urn}" was successfully created, but the Kubernetes API server reported that it failed '
            f"to fully initialize or become live: {error}"
        )
        raise InitializationFailed(message, name, state(error.live), error.reasons) from error
    return name, state(live)


def update(session: Session, request: provider_pb2.UpdateRequest) -> Properties:
    given, old_state = decode(request.news), decode(request.olds)
    inputs = normalize(to_object(given))
    if request.preview and (has_unknown(inputs) or not session.exists(kind_of(inputs))):
        return given
    _, old_live = parse(old_state)
    manager, old_manager = field_manager(old_state, inputs), field_manager(old_state, {})
    api_version = str(old_state.get(API_VERSION) or inputs.get("apiVersion"))

    def state(live: Object) -> Properties:
        return checkpoint(inputs, live, given, manager, api_version)

    try:
        before = _get(session, old_live)
        changed = apply.update(
            session, request.urn, inputs, before, manager, request.ignoreChanges, preview=request.preview
        )
    except NoKindMatch as error:
        raise PluginError(_no_kind("update", request.urn, error)) from error
    except ApiError as error:
        if request.preview and error.code == 403:
            return given
        return _update_failed(session, request, old_live, error, state)
    if request.preview:
        return state(changed)
    try:
        live = awaiters.until_ready(session, request.urn, inputs, changed, before, request.timeout)
    except AwaitFailed as error:
        name = _identity(error.live)
        message = f'the Kubernetes API server reported that "{name}" failed to fully initialize or become live: {error}'
        raise InitializationFailed(message, name, state(error.live), error.reasons) from error
    if manager != old_manager:
        apply.relinquish(session, live, old_manager)
    return state(live)


def read(session: Session, request: provider_pb2.ReadRequest) -> tuple[str, Properties, Properties] | None:
    """Returns the current id, state and inputs, or None if the object or its kind no longer exists."""
    old_state, given = decode(request.properties), decode(request.inputs)
    inputs = normalize(to_object(given))
    _, old_live = parse(old_state)
    namespace, name = parse_identity(request.id)
    kind = kind_of(inputs) if inputs.get("kind") else kind_of(old_live) if old_live else kind_of_urn(request.urn)
    try:
        live = session.kube.get(kind.api_version, kind.name, name, namespace)
    except NoKindMatch:
        return None
    except ApiError as error:
        if error.not_found:
            return None
        raise PluginError(str(error)) from error
    found = prune(live, inputs, drops_empty=kind.built_in) if inputs else _importable(live)
    manager = field_manager(old_state, inputs)
    state = checkpoint(found, live, given, manager, str(old_state.get(API_VERSION) or kind.api_version))
    properties = state["__inputs"]
    if inputs:
        try:
            awaiters.check(session, request.urn, inputs, live)
        except AwaitFailed as error:
            raise InitializationFailed(str(error), request.id, state, error.reasons, properties) from error
    return request.id, state, properties


def delete(session: Session, request: provider_pb2.DeleteRequest) -> None:
    """Deletes the object and waits until it is gone. A missing object or kind counts as deleted."""
    state = decode(request.properties)
    inputs, live = parse(state)
    namespace, name = naming.namespace_of(live) or None, parse_identity(request.id)[1]
    kind = kind_of(live)
    manager = field_manager(state, inputs)
    try:
        if is_patch(request.urn, inputs):
            apply.relinquish(session, live, manager)
            return
        propagation = _propagation(inputs)
        session.kube.delete(kind.api_version, kind.name, name, namespace, propagation=propagation)
    except NoKindMatch:
        return
    except ApiError as error:
        if error.not_found:
            return
        raise PluginError(_not_deleted(request.urn, inputs, error)) from error
    try:
        awaiters.until_deleted(session, request.urn, inputs, live, request.timeout)
    except AwaitFailed as error:
        kept = checkpoint(inputs, error.live, state, manager, str(state.get(API_VERSION) or kind.api_version))
        raise InitializationFailed(str(error), request.id, kept, error.reasons) from error


def _not_deleted(urn: str, inputs: Object, error: ApiError) -> str:
    if not is_patch(urn, inputs) or error.reason != "Invalid" or "Required value" not in str(error):
        return str(error)
    causes = (error.body.get("details") or {}).get("causes") or []
    field = next((cause.get("field") for cause in causes if cause.get("reason") == "FieldValueRequired"), "")
    return (
        "this Patch resource is currently managing a required field, so it can't be deleted directly. Either set the "
        f"`retainOnDelete` resource option, or transfer ownership of the field before deleting: {field}"
    )


def _propagation(inputs: Object) -> str:
    chosen = naming.annotation(inputs, naming.PROPAGATION).capitalize()
    return chosen if chosen in ("Orphan", "Background") else "Foreground"


def _cannot_preview(session: Session, urn: str, inputs: Object) -> bool:
    return has_unknown(inputs) or not session.exists(kind_of(inputs)) or is_patch(urn, inputs)


def _update_failed(
    session: Session, request: provider_pb2.UpdateRequest, old_live: Object, error: ApiError, state: Any
) -> Properties:
    try:
        live = _get(session, old_live)
    except (ApiError, NoKindMatch) as gone:
        raise PluginError(
            f'update of resource "{request.urn}" failed: {error}\nunable to get cluster state: {gone}'
        ) from error
    name = _identity(live)
    message = f'the Kubernetes API server reported that "{name}" failed to fully initialize or become live: {error}'
    raise InitializationFailed(message, name, state(live)) from error


def _importable(live: Object) -> Object:
    inputs = normalize({name: value for name, value in live.items() if name != "status"})
    annotations = inputs["metadata"].pop("annotations", {})
    if kept := {name: value for name, value in annotations.items() if name not in _NOT_IMPORTED}:
        inputs["metadata"]["annotations"] = kept
    return inputs


def _get(session: Session, live: Object) -> Object:
    kind = kind_of(live)
    return session.kube.get(kind.api_version, kind.name, naming.name_of(live), naming.namespace_of(live) or None)


def _identity(live: Object) -> str:
    return identity(naming.namespace_of(live), naming.name_of(live))


def _no_kind(operation: str, urn: str, error: NoKindMatch) -> str:
    kind = f" with kind {error.api_version}/{error.kind}" if operation == "creation" else ""
    return (
        f'{operation} of resource "{urn}"{kind} failed because the Kubernetes API server reported that the apiVersion '
        f"for this resource does not exist. Verify that any required CRDs have been created: {error}"
    )
