"""Diff: compares inputs, and decides whether a change replaces the resource.

Rules: pulumi/pulumi-azure-native, provider/pkg/provider/diff.go and provider.go (Diff). Arrays whose items have
identifiers (`x-ms-identifiers`) are not supported: in simulated types, such arrays have at most one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simulator.plugins.azure_native.resources import API_VERSION, CREATE_BEFORE_DELETE, Definition, of_urn
from simulator.plugins.marshal import Properties, decode, without_nulls
from simulator.plugins.protocol import provider_pb2

Kind = provider_pb2.PropertyDiff.Kind
_ADD, _UPDATE = provider_pb2.PropertyDiff.ADD, provider_pb2.PropertyDiff.UPDATE
_DELETE, _ADD_REPLACE = provider_pb2.PropertyDiff.DELETE, provider_pb2.PropertyDiff.ADD_REPLACE
_REPLACING = {
    _ADD: _ADD_REPLACE,
    _DELETE: provider_pb2.PropertyDiff.DELETE_REPLACE,
    _UPDATE: provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
_RENAMED_SKUS = {"name": {"Base", "Basic"}, "tier": {"Standard", "Paid"}}  # the new and the old name
Change = tuple[str, str, "Kind.ValueType"]
"""The path with indices (`a[0].b`), the path without indices (`a[].b`), and the kind of change."""


def diff(request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
    """Compares inputs. A replacement deletes the old resource first, unless the provider chose a random name."""
    definition = of_urn(request.urn)
    olds, news, state = (without_nulls(decode(each)) for each in (request.old_inputs, request.news, request.olds))
    if API_VERSION in state:
        olds.setdefault(API_VERSION, state[API_VERSION])  # imported inputs have no API version
    detailed = {path: _classify(definition, plain, kind) for path, plain, kind in _top_changes(olds, news)}
    for path, kind in detailed.items():
        if kind == _ADD_REPLACE and path in news and news[path] == state.get(path):
            detailed[path] = _ADD  # Azure already has this value
    defaults = definition.sdk.defaults
    changed = sorted(
        path
        for path, kind in detailed.items()
        if not (kind == _ADD and path in defaults and news.get(path) == defaults[path])
    )
    if not changed:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    replaces = [path for path in changed if detailed[path] in _REPLACING.values()]
    delete_first = bool(replaces)
    if isinstance(olds.get(CREATE_BEFORE_DELETE), bool):
        delete_first = not olds[CREATE_BEFORE_DELETE]
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME,
        replaces=replaces,
        deleteBeforeReplace=delete_first,
        diffs=[path.split(".")[0] for path in changed],
        detailedDiff={
            path: provider_pb2.PropertyDiff(kind=kind, inputDiff=path in changed) for path, kind in detailed.items()
        },
        hasDetailedDiff=True,
    )


def _classify(definition: Definition, plain: str, kind: Kind.ValueType) -> Kind.ValueType:
    """Marks changes of fixed properties as replacements: in a fixed object, only updates; in a list, none."""
    fixed = {*definition.sdk.replaces, *definition.parameters}
    objects = [plain[:at] for at, letter in enumerate(plain) if letter == "."]
    inside = kind == _UPDATE and any(parent in fixed for parent in objects)
    return _REPLACING[kind] if plain in fixed or inside else kind


def _top_changes(olds: Properties, news: Properties) -> Iterator[Change]:
    same = {name for name, is_same in _SAME.items() if is_same(olds.get(name), news.get(name))}
    old, new = ({name: value for name, value in side.items() if name not in same} for side in (olds, news))
    return _changes(old, new, "", "")


def _changes(old: Any, new: Any, path: str, plain: str) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        dot = "." if path else ""
        for name in sorted(name for name in {*old, *new} if not name.startswith("__")):
            yield from _change(old, new, name, f"{path}{dot}{name}", f"{plain}{dot}{name}")
    elif isinstance(old, list) and isinstance(new, list):
        olds, news = dict(enumerate(old)), dict(enumerate(new))
        for index in range(max(len(old), len(new))):
            yield from _change(olds, news, index, f"{path}[{index}]", f"{plain}[]")
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield path, plain, _UPDATE


def _change(old: Mapping[Any, Any], new: Mapping[Any, Any], key: Any, path: str, plain: str) -> Iterator[Change]:
    if key not in old:
        yield path, plain, _ADD
    elif key not in new:
        yield path, plain, _DELETE
    else:
        yield from _changes(old[key], new[key], path, plain)


def _same_name(old: Any, new: Any) -> bool:
    return isinstance(old, str) and isinstance(new, str) and old.lower() == new.lower()


def _same_location(old: Any, new: Any) -> bool:
    return isinstance(old, str) and isinstance(new, str) and _same_name(old.replace(" ", ""), new.replace(" ", ""))


def _same_sku(old: Any, new: Any) -> bool:
    """Returns whether two SKUs differ only in Azure's old and new names (pulumi-azure-native#2600)."""
    if not (isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys() == _RENAMED_SKUS.keys()):
        return False
    return all(old[key] == new[key] or {old[key], new[key]} == names for key, names in _RENAMED_SKUS.items())


_SAME: Mapping[str, Callable[[Any, Any], bool]] = {
    "location": _same_location,
    "resourceGroupName": _same_name,
    "sku": _same_sku,
}
