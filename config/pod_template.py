"""What a pod template may hold: names and types as the pinned Kubernetes SDK of Pulumi has them.

That SDK ends in an assertion where a map stands for a list, and the API server answers each wrong type by itself, one
job after the other.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pulumi import _types

from config.near import hint, near

Fault = tuple[tuple[str | int, ...], str, str]
"""Where in the template, what is wrong there, and what is allowed."""
_QUANTITIES = ("limits", "requests", "overhead", "sizeLimit", "divisor")
"""What is below these keys may be a number too (apimachinery, pkg/api/resource, Quantity)."""
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def template_faults(template: Mapping[str, Any]) -> Iterator[Fault]:
    """All keys that a pod template does not have, and values of another type than theirs. A null takes a key out."""
    # Only here: it takes a second, which nobody should pay who overrides nothing.
    from pulumi_kubernetes.core.v1 import PodTemplateSpecArgs

    return _faults(template, PodTemplateSpecArgs, ())


def _faults(value: Any, kind: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if value is None:
        return
    kinds = _alternatives(kind)
    if kinds == [str] and any(part in _QUANTITIES for part in path[-2:]):
        kinds = [str, int, float]
    fitting = next((each for each in kinds if _fits(value, each)), None)
    if fitting is None:
        allowed = " or ".join(dict.fromkeys(_called(each) for each in kinds))
        yield path, f"is not {allowed}", allowed
        return
    known = _types.input_type_types(fitting) if _is_object(fitting) else None
    for key, below in _items(value):
        if known is None:
            yield from _faults(below, typing.get_args(fitting)[-1], (*path, key))
        elif key in known:
            yield from _faults(below, known[key], (*path, key))
        else:
            yield (*path, key), f"is an unknown key{hint(near(str(key), known))}", ", ".join(sorted(known))


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    """What a map or a list holds, by key or position; nothing for all else."""
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _alternatives(kind: Any) -> list[Any]:
    """The types that a property may have, without those by which Pulumi stands for values to come."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [found for each in typing.get_args(kind) for found in _alternatives(each)]
    plain = _is_object(kind) or kind in _WORDS or typing.get_origin(kind) in (Sequence, Mapping)
    return [kind] if plain else []


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and _types.is_input_type(kind)


def _fits(value: Any, kind: Any) -> bool:
    if _is_object(kind) or typing.get_origin(kind) is Mapping:
        return isinstance(value, Mapping)
    if typing.get_origin(kind) is Sequence:
        return isinstance(value, list)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _called(kind: Any) -> str:
    return _WORDS.get(kind) or ("a list" if typing.get_origin(kind) is Sequence else "a map")
