"""Finds a stack file's additional tools: those of its operators, and kubelogin.

In tools.yaml, `needed_for` has the operator's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from simulator.host import paths
from simulator.tools.catalogue import Catalogue, Tool

_OPERATORS, _CLUSTER = "ai-on-aks:operators", "ai-on-aks:cluster"
_PLATFORM = "ai-on-aks:platformStack"
_LOGIN = "entra"


def of_stack(catalogue: Catalogue, stack: str) -> list[Tool]:
    """Returns the tools of simulator and stack. Ignores an unreadable file, which Pulumi will reject."""
    return catalogue.needed_for("simulator", *_groups(paths.ROOT / f"Pulumi.{stack}.yaml"))


def _groups(file: Path) -> list[str]:
    """Returns the keys of scheduler, operators and login. A stack on a shared platform has none."""
    try:
        config = (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("config") or {}
        operators, cluster = (_settings(config.get(key)) for key in (_OPERATORS, _CLUSTER))
    except (OSError, ValueError, yaml.YAMLError, AttributeError):
        return []
    if not config or config.get(_PLATFORM):
        return []
    scheduler = to_camel(str(operators.get("scheduler", "")).replace("-", "_")).removesuffix("Scheduler")
    on = (key for key, own in operators.items() if isinstance(own, Mapping) and _is_true(own.get("enabled")))
    return [scheduler, *on, *([] if _is_true(cluster.get("localAccounts")) else [_LOGIN])]


def _settings(value: Any) -> Mapping[str, Any]:
    """Returns a structured setting, which Pulumi writes as a mapping or as text."""
    found = yaml.safe_load(value) if isinstance(value, str) else value
    return found if isinstance(found, Mapping) else {}


def _is_true(value: Any) -> bool:
    """Returns whether a setting is true. Pulumi may write `true` as text."""
    return str(value).lower() == "true"
