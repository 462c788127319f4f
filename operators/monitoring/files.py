"""Alert rules and dashboards (files in this folder), and the endpoints that Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from config.schema.operators import MLBATCH_NAMESPACE, NVIDIA_NAMESPACE

_HERE = Path(__file__).resolve().parent
ALERTS = _HERE / "alerts.yaml"
_DATA_SOURCE = {"type": "prometheus", "uid": "prometheus"}
"""The data source, with the chart's name (grafana.sidecar.datasources.uid)."""
_WIDTH, _HEIGHT, _PER_ROW = 12, 8, 2
_SCHEMA_VERSION = 39
"""The schema of Grafana 11, which newer versions also read."""
API = "monitoring.coreos.com/v1"
_SECURE = {
    "port": "https",
    "scheme": "https",
    "tlsConfig": {"insecureSkipVerify": True},
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
}
"""An endpoint that has a self-signed certificate, and asks the API server whether Prometheus may read metrics."""
_PLAIN = {"port": "monitoring-port"}
_NETWORK_OPERATOR_PORT = 8080
"""The operator's default, which the chart keeps (Mellanox/network-operator v26.4.1, main.go:168,
templates/operator.yaml).
"""


class Panel(BaseModel):
    """A graph of one query's results over time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    query: str
    legend: str
    unit: str = "short"
    stacked: bool = False


class Dashboard(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    panels: tuple[Panel, ...]


def rules() -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return spec


def dashboards() -> Mapping[str, Dashboard]:
    text = (_HERE / "dashboards.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Dashboard]).validate_python(yaml.safe_load(text))


def grafana_json(name: str, dashboard: Dashboard) -> str:
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


def service_monitors() -> dict[str, dict[str, Any]]:
    """Returns specs of ServiceMonitors by name, for operators without one. They do no harm without the operator."""
    return {
        "appwrapper": _spec("appwrapper-system", {"app.kubernetes.io/name": "appwrapper"}, _SECURE),
        "kuberay": _spec(MLBATCH_NAMESPACE, {"app.kubernetes.io/name": "kuberay"}, _PLAIN),
        "training-operator": _spec(MLBATCH_NAMESPACE, {"app": "training-operator"}, _PLAIN),
    }


def pod_monitors() -> dict[str, dict[str, Any]]:
    """Returns specs of PodMonitors by name, for operators whose charts have no Service.

    The network operator's pod also does not declare its port. Prometheus finds the pod by its only container
    (prometheus-operator v0.93.0, pkg/prometheus/promcfg.go:1570), and a relabeling sets the port.
    """
    address = {
        "sourceLabels": ["__meta_kubernetes_pod_ip"],
        "targetLabel": "__address__",
        "replacement": f"$1:{_NETWORK_OPERATOR_PORT}",
    }
    labels = {"app.kubernetes.io/name": "network-operator"}
    return {"network-operator": _spec(NVIDIA_NAMESPACE, labels, {"relabelings": [address]}, "podMetricsEndpoints")}


def _spec(namespace: str, labels: dict[str, str], endpoint: dict[str, Any], of: str = "endpoints") -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchNames": [namespace]},
        "selector": {"matchLabels": labels},
        of: [endpoint],
    }
