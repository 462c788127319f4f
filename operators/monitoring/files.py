"""Alert rules, which are a file beside this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ALERTS = Path(__file__).resolve().parent / "alerts.yaml"


def rules() -> dict[str, Any]:
    """The spec of a PrometheusRule, which is a file of rules as Prometheus reads them."""
    spec: dict[str, Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    return spec
