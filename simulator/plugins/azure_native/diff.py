"""Diff: old inputs against new ones, and whether a change replaces the resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.plugins.azure_native.resources import CREATE_BEFORE_DELETE, Definition, of_urn
from simulator.plugins.marshal import decode, reveal
from simulator.plugins.protocol import provider_pb2

Kind = provider_pb2.PropertyDiff.Kind
_REPLACING = {
    provider_pb2.PropertyDiff.ADD: provider_pb2.PropertyDiff.ADD_REPLACE,
    provider_pb2.PropertyDiff.DELETE: provider_pb2.PropertyDiff.DELETE_REPLACE,
    provider_pb2.PropertyDiff.UPDATE: provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
Change = tuple[str, str, "Kind.ValueType"]
"""Path as shown (`a[0].b`), path without indices (`a[].b`), and what happened there."""


def diff(request: provider_pb2.DiffRequest) -> provider_pb2.DiffResponse:
    """Only inputs count. A replacement deletes first unless the provider chose a random name."""
    definition = of_urn(request.urn)
    olds, news = _plain(request.old_inputs), _plain(request.news)
    detailed = {path: _classify(definition, path, plain, kind) for path, plain, kind in _changes(olds, news, "", "")}
    ignored = {CREATE_BEFORE_DELETE}
    detailed = {path: kind for path, kind in detailed.items() if path not in ignored}
    if not detailed:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    replaces = sorted(path for path, kind in detailed.items() if kind in _REPLACING.values())
    delete_first = bool(replaces)
    if isinstance(olds.get(CREATE_BEFORE_DELETE), bool):
        delete_first = not olds[CREATE_BEFORE_DELETE]
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME,
        replaces=replaces,
        deleteBeforeReplace=delete_first,
        diffs=sorted({path.split(".")[0].split("[")[0] for path in detailed}),
        detailedDiff={path: provider_pb2.PropertyDiff(kind=kind, inputDiff=True) for path, kind in detailed.items()},
        hasDetailedDiff=True,
    )


def _plain(struct: Any) -> dict[str, Any]:
    found = reveal(decode(struct))
    return {name: value for name, value in found.items() if value is not None}


def _classify(definition: Definition, path: str, plain: str, kind: Kind.ValueType) -> Kind.ValueType:
    fixed = {*definition.sdk.replaces, *definition.parameters}
    parents = [plain[:at] for at, letter in enumerate(plain) if letter in ".["]
    inside = kind == provider_pb2.PropertyDiff.UPDATE and any(parent in fixed for parent in parents)
    return _REPLACING[kind] if plain in fixed or inside else kind


def _changes(old: Any, new: Any, path: str, plain: str) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        dot = "." if path else ""
        for name in sorted({*old, *new}):
            at, plain_at = f"{path}{dot}{name}", f"{plain}{dot}{name}"
            yield from _change(old, new, name, at, plain_at)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            at, plain_at = f"{path}[{index}]", f"{plain}[]"
            olds, news = dict(enumerate(old)), dict(enumerate(new))
            yield from _change(olds, news, index, at, plain_at)
    elif not _same(old, new, path):
        yield path, plain, provider_pb2.PropertyDiff.UPDATE


def _change(old: Mapping[Any, Any], new: Mapping[Any, Any], key: Any, path: str, plain: str) -> Iterator[Change]:
    if key not in old:
        yield path, plain, provider_pb2.PropertyDiff.ADD
    elif key not in new:
        yield path, plain, provider_pb2.PropertyDiff.DELETE
    else:
        yield from _changes(old[key], new[key], path, plain)


def _same(old: Any, new: Any, path: str) -> bool:
    if path == "location" and isinstance(old, str) and isinstance(new, str):
        return old.replace(" ", "").lower() == new.replace(" ", "").lower()
    return bool(old == new and isinstance(old, bool) == isinstance(new, bool))
