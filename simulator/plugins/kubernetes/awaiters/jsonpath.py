"""The part of JSONPath that `kubectl wait` users write: names, indices, slices of all, and `[?(@.key=="value")]`."""

from __future__ import annotations

import re
from typing import Any, Final

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)          # .name, with \. for a dot in it
      | \[(?P<index>-?\d+)\]                     # [0]
      | \[['"](?P<quoted>[^'"]+)['"]\]           # ['name']
      | (?P<every>\[\*\]|\.\*)                   # [*]
      | \[\?\(\s*@\.(?P<key>[\w.\-]+)\s*(?P<operator>==|!=)\s*(?P<operand>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
    """,
    re.VERBOSE,
)


class JsonPath:
    """A path in braces, `{.status.conditions[?(@.type=="Ready")].status}`. Raises ValueError for one it cannot read."""

    def __init__(self, text: str) -> None:
        expression = text.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
        self._steps: list[re.Match[str]] = []
        position = 0
        while position < len(expression):
            step = _STEP.match(expression, position)
            if step is None:
                raise ValueError(f'parsing "{text}": cannot read "{expression[position:]}"')
            self._steps.append(step)
            position = step.end()

    def select(self, value: Any) -> list[Any]:
        """Everything that the path leads to; an empty list where it leads nowhere."""
        found = [value]
        for step in self._steps:
            found = [item for each in found for item in _take(each, step)]
        return found


def _take(value: Any, step: re.Match[str]) -> list[Any]:
    if step["every"]:
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    if step["index"] is not None:
        index = int(step["index"])
        inside = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if inside else []
    if step["key"] is not None:
        return [item for item in value if _matches(item, step)] if isinstance(value, list) else []
    name = step["quoted"] or re.sub(r"\\(.)", r"\1", step["name"] or "")
    if name == "*":
        return list(value.values()) if isinstance(value, dict) else []
    return [value[name]] if isinstance(value, dict) and name in value else []


def _matches(item: Any, step: re.Match[str]) -> bool:
    for name in step["key"].split("."):
        item = item.get(name) if isinstance(item, dict) else None
    operand = step["operand"].strip("\"'")
    shown = str(item).lower() if isinstance(item, bool) else str(item)
    return (item is not None and shown == operand) == (step["operator"] == "==")
