"""Checks Helm values against the keys of a pinned chart, because Helm ignores unknown keys.

A line of `charts/<chart>.keys` is `dotted.path: type = default`, with a backslash before a dot in a key. Keys below a
default map, list or null (free-form) and in Kubernetes' own types (labels, node selectors, resources) are not checked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.data.data import FOLDER

_TYPES: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (int, float), "str": (str, int, float)}
_KUBERNETES = ("annotations", "labels", "nodeselector", "resources", "affinity", "securitycontext", "updatestrategy")
"""The ends of keys whose contents Kubernetes defines."""
_ALERTMANAGER = ("alertmanager", "config")
_FREE = {"map": (dict,), "list": (list,), "null": ()}


@dataclass(frozen=True)
class ValueProblem:
    """A value that the chart does not accept: its type is not `expected`, or its key is not one of `known`."""

    path: tuple[str, ...]
    value: Any
    expected: str = ""
    known: tuple[str, ...] = ()
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChartKey:
    """One line of a keys file."""

    path: tuple[str, ...]
    kind: str
    default: str


@dataclass
class _Node:
    kind: str = ""
    keys: dict[str, _Node] = field(default_factory=dict)


def own_keys(chart: str) -> list[ChartKey]:
    """Returns the keys in the file of this chart, without those in files of subcharts. Raises FileNotFoundError for an
    unknown chart.
    """
    _, *lines = _lines(chart)
    return [_key(line) for line in lines if line.strip()]


@functools.cache
def chart_keys(chart: str) -> tuple[str, _Node]:
    root = _Node()
    _add(root, own_keys(chart))
    for name, subchart in root.keys.items():
        if _file(name).exists():  # all keys of the subchart are valid, also those not in the chart's file
            _add(subchart, own_keys(name))
    version = _lines(chart)[0].removeprefix("# ").partition(":")[0].split()[1]
    return version, root


def _file(chart: str) -> Path:
    return FOLDER / "charts" / f"{chart}.keys"


def _lines(chart: str) -> list[str]:
    return _file(chart).read_text(encoding="utf-8").splitlines()


def _key(line: str) -> ChartKey:
    path, _, rest = line.partition(": ")
    kind, _, default = rest.partition(" = ")
    return ChartKey(tuple(parts(path)), kind.strip(), default.strip())


def parts(path: str) -> list[str]:
    return [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", path)]


def _add(root: _Node, keys: Iterable[ChartKey]) -> None:
    for key in keys:
        node = root
        for part in key.path:
            node = node.keys.setdefault(part, _Node())
        node.kind = key.kind


def value_problems(chart: str, values: Mapping[str, Any]) -> list[ValueProblem]:
    _, root = chart_keys(chart)
    return list(_check(root, values, ()))


def _check(node: _Node, values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ValueProblem]:
    for key, value in values.items():
        here = (*path, key)
        found = node.keys.get(key)
        if found is None:
            yield ValueProblem(here, value, known=tuple(node.keys), beside=values)
        elif value is None:
            continue  # null removes a default, which Helm allows for every key
        elif found.keys and found.kind not in _FREE:
            if not isinstance(value, Mapping):
                yield ValueProblem(here, value, expected="map")
            elif not key.lower().endswith(_KUBERNETES) and here != _ALERTMANAGER:
                yield from _check(found, value, here)
        elif not _fits(found.kind, value):
            yield ValueProblem(here, value, expected=found.kind)


def _fits(kind: str, value: Any) -> bool:
    if kind in _FREE:
        return not _FREE[kind] or isinstance(value, _FREE[kind])
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, _TYPES[kind])
