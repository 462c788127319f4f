"""Changes of objects and their effects, as observed with the official plugin."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.plugins.marshal import Properties


@dataclass(frozen=True)
class Row:
    """An object, a change at a dotted path, and paths that replace the object; none for an update."""

    manifest: Properties
    path: str
    value: Any
    replaces: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        version = self.manifest["apiVersion"]
        return f"{'core/v1' if version == 'v1' else version}:{self.manifest['kind']}"


_TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
EMPTY_SECRET: Properties = _TABLE["objects"]["empty Secret"]
ROWS = {
    name: Row(_TABLE["objects"][row["of"]], row["path"], row["value"], tuple(row.get("replaces", ())))
    for name, row in _TABLE["rows"].items()
}


def custom_kind() -> Properties:
    return copy.deepcopy(_TABLE["custom kind"])


def changed(manifest: Properties, path: str, value: Any) -> Properties:
    """The path has `containers[0]` for an index."""
    result = copy.deepcopy(manifest)
    *parents, last = path.replace("[", ".[").split(".")
    at: Any = result
    for step in parents:
        at = at[int(step[1:-1])] if step.startswith("[") else at.setdefault(step, {})
    at[last] = value
    return result
