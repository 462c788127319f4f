"""Which Services Prometheus asks, beside those that charts name themselves. Pure."""

from __future__ import annotations

from typing import Any

from config.schema.operators import MLBATCH_NAMESPACE

API = "monitoring.coreos.com/v1"
_SECURE = {
    "port": "https",
    "scheme": "https",
    "tlsConfig": {"insecureSkipVerify": True},
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
}
"""Of who asks the API server whether Prometheus may read metrics; its certificate is of its own making."""
_PLAIN = {"port": "monitoring-port"}


def service_monitors() -> dict[str, dict[str, Any]]:
    """Specs by name, of operators whose released manifests bring none. One of what is not there finds nothing."""
    return {
        "appwrapper": _spec("appwrapper-system", {"app.kubernetes.io/name": "appwrapper"}, _SECURE),
        "kuberay": _spec(MLBATCH_NAMESPACE, {"app.kubernetes.io/name": "kuberay"}, _PLAIN),
        "training-operator": _spec(MLBATCH_NAMESPACE, {"app": "training-operator"}, _PLAIN),
    }


def _spec(namespace: str, labels: dict[str, str], endpoint: dict[str, Any]) -> dict[str, Any]:
    return {
        "namespaceSelector": {"matchNames": [namespace]},
        "selector": {"matchLabels": labels},
        "endpoints": [endpoint],
    }
