"""The format of golden files: YAML with short values on one line, and a report of differences."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from config.data.data import parsed

WIDTH = 120
"""The maximum length of a map or list on one line, with indentation."""
_SHOWN = 200
_NOTHING = object()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def dumps(resources: Mapping[str, Any]) -> str:
    text = io.StringIO()
    dumper = _Dumper(text, width=10**9, allow_unicode=True, sort_keys=True)
    dumper.open()
    root = dumper.represent_data(dict(resources))
    _choose_styles(root, 0, 0)
    dumper.serialize(root)
    dumper.close()
    return text.getvalue()


def loads(text: str) -> dict[str, Any]:
    found: dict[str, Any] = parsed(text) or {}
    return found


def report(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    lines: list[str] = []
    for name in sorted({*before, *after}):
        if name not in after:
            lines.append(f"{name} is no longer created")
        elif name not in before:
            lines.append(f"{name} is new")
        elif found := list(_differences(before[name], after[name])):
            lines += [name, *(f"    {each}" for each in found)]
    return "\n".join(lines)


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _differences(before.get(key, _NOTHING), after.get(key, _NOTHING), f"{path}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{at}]")
    elif isinstance(before, list) and isinstance(after, list):
        gone, new = ([each for each in one if each not in other] for one, other in ((before, after), (after, before)))
        yield from (f"{path}: without {_shown(each)}" for each in gone)
        yield from (f"{path}: with {_shown(each)}" for each in new)
        if not gone and not new:
            yield f"{path}: {_shown(before)} -> {_shown(after)}"
    elif before != after:
        yield f"{path}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    text = "nothing" if value is _NOTHING else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _choose_styles(node: yaml.Node, column: int, start: int) -> None:
    """Puts a map or list on one line if it fits, else one entry per line.

    `column` is its entries' column; `start` its column on one line, after its key.
    """
    if not isinstance(node, yaml.CollectionNode):
        return
    node.flow_style = start + _length(node) <= WIDTH
    for key, value in _entries(node):
        is_in_map = isinstance(node, yaml.MappingNode)
        indented = column if is_in_map and isinstance(value, yaml.SequenceNode) else column + 2
        _choose_styles(value, 0 if node.flow_style else indented, 0 if node.flow_style else column + (key or 2))


def _length(node: yaml.Node) -> int:
    """A multi-line string never fits."""
    if isinstance(node, yaml.ScalarNode):
        return WIDTH + 1 if "\n" in node.value else len(node.value) + 2
    return 2 + sum(key + _length(value) + 2 for key, value in _entries(node))


def _entries(node: yaml.Node) -> list[tuple[int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [(len(key.value) + 2, value) for key, value in node.value]
    return [(0, value) for value in node.value]
