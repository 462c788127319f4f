"""Parses OLMo's training configs (simple YAML), and the command line's overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simulator.sandbox.library.recipe import Failed

FILE_TOKENS = 12_000_000_000
"""Assumed tokens per data file: OLMo-1B has 3.1T tokens in 249 files."""
_SPECIAL = {"true": True, "false": False, "null": None}


class Config(NamedTuple):
    """Settings by name (`model_d_model` for `model.d_model`), and the files of data and evaluations."""

    settings: dict[str, Any]
    data: list[str]
    evaluation: list[str]

    def max_steps(self, tokens_per_step: int) -> int:
        """Returns the number of steps in `max_duration`, which is in steps, tokens (`2e12T`) or epochs (`1ep`)."""
        duration = str(self.settings["max_duration"])
        if duration.endswith("ep"):
            return int(duration[:-2]) * len(self.data) * FILE_TOKENS // tokens_per_step
        return math.ceil(float(duration[:-1]) / tokens_per_step) if duration.endswith("T") else int(float(duration))


def load(path: Path, overrides: Iterable[str], known: Sequence[str]) -> Config:
    """Loads a config. Raises OSError, and Failed for an unknown override."""
    values, data, evaluation = _parse(path.read_text())
    for word in overrides:
        # `--name=value` or `--name` (`clean_opt` of olmo/util.py)
        name, equals, value = word.partition("=")
        name = name.strip("-").replace("-", "_")
        if name.partition(".")[0] not in known:
            where = f"\n    full_key: {name}\n    object_type=TrainConfig"
            raise Failed(f"OLMoConfigurationError: Key '{name}' not in 'TrainConfig'{where}")
        values = {key: old for key, old in values.items() if not key.startswith(f"{name}.")}  # drops an old section
        values[name] = value if equals else "true"
    return Config({name.replace(".", "_"): _scalar(value) for name, value in values.items()}, data, evaluation)


def _scalar(text: str) -> Any:
    if text in _SPECIAL:
        return _SPECIAL[text]
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _parse(text: str) -> tuple[dict[str, str], list[str], list[str]]:
    values: dict[str, str] = {}
    files: dict[str, list[str]] = {"data": [], "evaluators": []}
    section = ""
    for line in text.splitlines():
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if entry := re.match(r"([a-z_]+):\s*(.*)$", bare):
            section = entry[1]
            values[section] = entry[2]
        elif entry := re.match(r"  ([a-z_]+):\s+(.+)$", bare):
            values[f"{section}.{entry[1]}"] = entry[2]
        elif section in files and (entry := re.match(r"\s*- (\S+\.npy)$", bare)):
            files[section].append(entry[1])
    return values, files["data"], files["evaluators"]
