"""Validates pod templates against the types of Pulumi's pinned Kubernetes SDK and Kubernetes' choices.

Without this validation, the SDK fails with an assertion if a map replaces a list, and the API server reports wrong
types one by one.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from config.data import data
from config.data.near import hint, near
from config.schema.base import Unfit
from k8s.quantities import is_quantity

_QUANTITIES = ("limits", "requests", "overhead", "sizeLimit", "divisor")
"""Keys of quantities, which may also be numbers (apimachinery, pkg/api/resource, Quantity)."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@functools.cache
def choices() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = data.read("pod_enums.yaml")
    return found


def template_faults(template: Mapping[str, Any]) -> Iterator[Unfit]:
    """Yields errors for unknown keys, wrong types, and values outside the choices. A null removes a key."""
    # Imported only here: it takes a second, and only overrides need it.
    from pulumi_kubernetes.core.v1 import PodTemplateSpecArgs

    return _faults(template, PodTemplateSpecArgs, ())


def _faults(value: Any, kind: Any, path: tuple[str | int, ...]) -> Iterator[Unfit]:
    if value is None:
        return
    kinds = _alternatives(kind)
    takes_quantity = kinds == [str] and any(part in _QUANTITIES for part in path[-2:])
    if takes_quantity:
        kinds = [str, int, float]
    fitting = next((each for each in kinds if _fits(value, each)), None)
    if fitting is None:
        allowed = " or ".join(dict.fromkeys(_called(each) for each in kinds))
        yield Unfit(f"is not {allowed}", None, path, allowed)
        return
    if takes_quantity and isinstance(value, str) and not is_quantity(value):
        short = value.rstrip("Bb")  # as in 10GB or 10GiB
        yield Unfit(f"is {value!r}", short if is_quantity(short) else None, path, "a quantity, as in 500m or 10Gi")
        return
    known = _sdk().input_type_types(fitting) if _is_object(fitting) else None
    for key, below in _items(value):
        if known is None:
            yield from _faults(below, typing.get_args(fitting)[-1], (*path, key))
        elif key in known:
            yield from _faults(below, known[key], (*path, key))
            yield from _unlisted(below, fitting, (*path, key))
        else:
            yield Unfit("is an unknown key", below=(*path, key), known=known)


def _unlisted(value: Any, kind: Any, path: tuple[str | int, ...]) -> Iterator[Unfit]:
    allowed = choices().get(kind.__name__.removesuffix("Args"), {}).get(str(path[-1]), [])
    for where, text in [((*path, index), each) for index, each in _items(value)] or [(path, value)]:
        if allowed and text and isinstance(text, str) and text not in allowed:
            likely = near(text, allowed)
            yield Unfit(f"is {text!r}{hint(likely)}", next(iter(likely), None), where, ", ".join(allowed))


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _alternatives(kind: Any) -> list[Any]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [found for each in typing.get_args(kind) for found in _alternatives(each)]
    plain = _is_object(kind) or kind in _WORDS or typing.get_origin(kind) in (Sequence, Mapping)
    return [kind] if plain else []


def _sdk() -> types.ModuleType:
    """Returns the SDK's module for types. Imports it only when needed, because that takes a quarter of a second."""
    from pulumi import _types

    return _types


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and bool(_sdk().is_input_type(kind))


def _fits(value: Any, kind: Any) -> bool:
    if _is_object(kind) or typing.get_origin(kind) is Mapping:
        return isinstance(value, Mapping)
    if typing.get_origin(kind) is Sequence:
        return isinstance(value, list)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _called(kind: Any) -> str:
    return _WORDS.get(kind) or ("a list" if typing.get_origin(kind) is Sequence else "a map")
