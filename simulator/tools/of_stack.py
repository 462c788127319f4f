"""The tools that the operators of a stack need beside the simulator's, read from its stack file.

The groups in `needed_for` of an operator's tools are its key in stack files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from simulator.host import paths
from simulator.tools.catalogue import Catalogue, Tool

_OPERATORS = "ai-on-aks:operators"
_PLATFORM = "ai-on-aks:platformStack"


def of_stack(catalogue: Catalogue, stack: str) -> list[Tool]:
    """Those of the simulator, and of the stack's operators. A file that cannot be read is for Pulumi to refuse."""
    names = ["simulator", *_operators(paths.ROOT / f"Pulumi.{stack}.yaml")]
    return [tool for tool in catalogue.tools if tool.needed_for.intersection(names)]


def _operators(file: Path) -> list[str]:
    """Keys of the operators that are turned on, and of the scheduler. None on another stack's platform."""
    try:
        config = (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("config") or {}
        asked = config.get(_OPERATORS) or {}
        asked = yaml.safe_load(asked) if isinstance(asked, str) else asked
    except (OSError, ValueError, yaml.YAMLError, AttributeError):
        return []
    if config.get(_PLATFORM) or not isinstance(asked, Mapping):
        return []
    scheduler = to_camel(str(asked.get("scheduler", "")).replace("-", "_")).removesuffix("Scheduler")
    return [scheduler, *(key for key, own in asked.items() if _is_on(own))]


def _is_on(own: Any) -> bool:
    """Whether an operator's settings have `enabled: true`, as Pulumi writes it or as text."""
    return isinstance(own, Mapping) and str(own.get("enabled")).lower() == "true"
