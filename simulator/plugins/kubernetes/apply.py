"""Writes objects: creates them by POST with retries, and changes them by server-side apply."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from k8s.objects import Object
from simulator.kube.client import JSON_PATCH, ApiError, NoKindMatch
from simulator.plugins.kubernetes import managed_fields, naming
from simulator.plugins.kubernetes.kinds import is_crd, is_patch, kind_of
from simulator.plugins.kubernetes.session import Session
from simulator.plugins.kubernetes.structural import parse_path

_TRIES: Final = 6
_EXISTS_ADVICE = """

The resource already exists in the cluster. Choose one:

  - a renamed Pulumi resource: give it an alias, or delete_before_replace where it has to be replaced
  - an object that something else owns: manage some of its fields with a Patch resource (NamespacePatch, ...)
  - an object to be taken over: `pulumi import`
  - objects to be overwritten on purpose: `upsertExistingObjects` on the provider"""
_CONFLICT_ADVICE = (
    "server-side apply field conflict detected, see https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/"
    "managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources for troubleshooting help"
)


class NamespaceMissing(Exception):
    """A dry run failed because the namespace of the object does not exist yet."""


def create(session: Session, urn: str, inputs: Object, manager: str, *, preview: bool) -> Object:
    """Creates the object.

    If its namespace or kind is missing, tries six times, with pauses that double (1 to 32 retry units). Raises
    ApiError, NoKindMatch or Cancelled, or NamespaceMissing in a preview.
    """
    wait = session.retry_unit
    for number in range(_TRIES):
        try:
            return _create_once(session, urn, inputs, manager, preview=preview)
        except (ApiError, NoKindMatch) as error:
            failure: ApiError | NoKindMatch = error
        if isinstance(failure, ApiError):
            if preview and _namespace_missing(failure):
                raise NamespaceMissing(str(failure)) from failure
            if not preview and (forgotten := _forgotten(session, inputs, manager, failure)):
                return update(session, urn, inputs, forgotten, manager, (), preview=preview)
            if not failure.not_found:
                raise _with_advice(failure)
        session.engine.status(urn, f"Retry #{number}; creation failed: {failure}")
        session.sleep(wait)
        wait *= 2
    raise failure


def update(
    session: Session, urn: str, inputs: Object, live: Object, manager: str, ignore: Sequence[str], *, preview: bool
) -> Object:
    """Makes the live object match the inputs. Removes fields that the inputs lack, unless other managers own them."""
    if is_crd(inputs):  # replaces the CRD, because a merge would keep removed fields of the schema
        version = {"resourceVersion": live["metadata"]["resourceVersion"]}
        replacement = inputs | {"metadata": inputs["metadata"] | version}
        return session.kube.replace(replacement, field_manager=manager, dry_run=preview)
    patch_resource = is_patch(urn, inputs)
    if not preview and not patch_resource:
        live = _hand_over(session, live, manager)
    wanted = _scoped(session, _without_ignored(inputs, live, manager, ignore))
    wanted["metadata"]["name"] = naming.name_of(live)
    force = _force(session, inputs, live, preview=preview)
    return _apply(session, wanted, manager, force=force, preview=preview)


def relinquish(session: Session, obj: Object, manager: str) -> None:
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace") if obj["metadata"].get(name)}
    empty = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
    session.kube.apply(empty, field_manager=manager)


def _forgotten(session: Session, inputs: Object, manager: str, failure: ApiError) -> Object | None:
    """Takes over and returns an object that a killed plugin created and the engine did not record, or returns None."""
    if not session.options.goes_on or failure.reason != "AlreadyExists":
        return None
    wanted = _scoped(session, inputs)
    name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace", "default")
    live = session.kube.find(wanted["apiVersion"], wanted["kind"], name, namespace)
    return _hand_over(session, live, manager, forgotten=True) if live and managed_fields.is_pulumis(live) else None


def _create_once(session: Session, urn: str, inputs: Object, manager: str, *, preview: bool) -> Object:
    wanted = _scoped(session, inputs)
    if session.options.upsert or is_patch(urn, inputs):
        force = preview or session.options.patch_force or naming.annotated(inputs, naming.PATCH_FORCE)
        return _apply(session, wanted, manager, force=force, preview=preview)
    return session.kube.create(wanted, field_manager=managed_fields.CREATOR, dry_run=preview)


def _apply(session: Session, wanted: Object, manager: str, *, force: bool, preview: bool) -> Object:
    try:
        return session.kube.apply(wanted, field_manager=manager, force=force, dry_run=preview)
    except ApiError as error:
        if not error.conflict:
            raise
        cause = f'The resource managed by field manager "{manager}" had an apply conflict: {error}'
        raise ApiError(error.code, error.reason, f"{_CONFLICT_ADVICE}\n{cause}", error.body) from error


def _hand_over(session: Session, live: Object, manager: str, *, forgotten: bool = False) -> Object:
    """Gives the plugin's fields to `manager`. Retries if the object changes meanwhile."""
    kind, name, namespace = kind_of(live), live["metadata"]["name"], live["metadata"].get("namespace")
    for last in (False, False, False, True):
        patch = managed_fields.hand_over(live, manager, forgotten=forgotten)
        if patch is None:
            return live
        try:
            return session.kube.patch(kind.api_version, kind.name, name, namespace, patch, content_type=JSON_PATCH)
        except ApiError as error:
            if last or not error.conflict:
                raise
        live = session.kube.get(kind.api_version, kind.name, name, namespace)
    raise AssertionError("the last try returns or raises")


def _force(session: Session, inputs: Object, live: Object, *, preview: bool) -> bool:
    return (
        naming.annotated(inputs, naming.PATCH_FORCE)
        or session.options.patch_force
        or (preview and managed_fields.has_creator(live))
        or not live.get("metadata", {}).get("managedFields")
    )


def _without_ignored(inputs: Object, live: Object, manager: str, ignore: Sequence[str]) -> Object:
    """Removes ignored fields that only others own. Sets other ignored fields to the live values, so that they stay."""
    wanted = copy.deepcopy(inputs)
    for text in ignore:
        path = tuple(str(step) for step in parse_path(text))
        theirs = managed_fields.owned(live, path, by=manager, others=True)
        if theirs and not managed_fields.owned(live, path, by=manager):
            _remove(wanted, path)
            continue
        value: Any = live
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            _set(wanted, path, copy.deepcopy(value))
    return wanted


def _set(obj: Object, path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        obj = obj.setdefault(name, {})
        if not isinstance(obj, dict):
            return
    obj[path[-1]] = value


def _remove(obj: Object, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        nested = obj.get(name)
        if not isinstance(nested, dict):
            return
        obj = nested
    obj.pop(path[-1], None)


def _scoped(session: Session, inputs: Object) -> Object:
    """Removes the namespace of a cluster-scoped kind, because Check may have guessed the scope."""
    metadata = dict(inputs.get("metadata") or {})
    kind = kind_of(inputs)
    if not session.kube.resource(kind.api_version, kind.name).namespaced:
        metadata.pop("namespace", None)
    return {**inputs, "apiVersion": kind.api_version, "metadata": metadata}


def _namespace_missing(error: ApiError) -> bool:
    return error.not_found and (error.body.get("details") or {}).get("kind") == "namespaces"


def _with_advice(error: ApiError) -> ApiError:
    if error.reason != "AlreadyExists":
        return error
    return ApiError(error.code, error.reason, f"{error}{_EXISTS_ADVICE}", error.body)
