"""Alert rules and dashboards, which are files beside this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_HERE = Path(__file__).resolve().parent
ALERTS = _HERE / "alerts.yaml"
DASHBOARDS = _HERE / "dashboards"


def rules() -> dict[str, Any]:
    """The spec of a PrometheusRule, which is a file of rules as Prometheus reads them."""
    spec: dict[str, Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return spec


def dashboards() -> dict[str, str]:
    """Of Grafana, by name."""
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(DASHBOARDS.glob("*.json"))}
