"""What monitoring has as files beside this: alert rules, and Grafana's dashboards. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

_HERE = Path(__file__).resolve().parent
ALERTS = _HERE / "alerts.yaml"
_DATA_SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""By the name that the chart gives it (grafana.sidecar.datasources.uid)."""
_WIDTH, _HEIGHT, _PER_ROW = 12, 8, 2
_SCHEMA_VERSION = 39
"""Of Grafana 11, which newer ones read, too."""


class Panel(BaseModel):
    """A graph of what one query finds over time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    query: str
    legend: str
    unit: str = "short"
    stacked: bool = False


class Dashboard(BaseModel):
    """Graphs of one subject."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    panels: tuple[Panel, ...]


def rules() -> dict[str, Any]:
    """The spec of a PrometheusRule, which is a file of rules as Prometheus reads them."""
    spec: dict[str, Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return spec


def dashboards() -> Mapping[str, Dashboard]:
    """By name."""
    text = (_HERE / "dashboards.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Dashboard]).validate_python(yaml.safe_load(text))


def grafana_json(name: str, dashboard: Dashboard) -> str:
    """The dashboard as Grafana imports it, from a file or by hand."""
    return json.dumps(
        {
            "uid": f"ai-on-aks-{name}",
            "title": dashboard.title,
            "tags": ["ai-on-aks"],
            "schemaVersion": _SCHEMA_VERSION,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "panels": [_panel(number, panel) for number, panel in enumerate(dashboard.panels)],
        },
        indent=1,
    )


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _PER_ROW)
    drawn = {"fillOpacity": 30, "stacking": {"mode": "normal", "group": "A"}} if panel.stacked else {}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _DATA_SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": drawn}, "overrides": []},
        "targets": [{"refId": "A", "datasource": _DATA_SOURCE, "expr": panel.query, "legendFormat": panel.legend}],
    }
