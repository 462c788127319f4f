"""Which Services and pods Prometheus asks, beside those that charts name themselves. Pure."""

from __future__ import annotations

from typing import Any

from config.schema.operators import MLBATCH_NAMESPACE, NVIDIA_NAMESPACE

API = "monitoring.coreos.com/v1"
_SECURE = {
    "port": "https",
    "scheme": "https",
    "tlsConfig": {"insecureSkipVerify": True},
    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
}
"""Of who asks the API server whether Prometheus may read metrics; its certificate is of its own making."""
_PLAIN = {"port": "monitoring-port"}
_NETWORK_OPERATOR_PORT = 8080
"""Its default, which its chart leaves so (Mellanox/network-operator v26.4.1, main.go:168, templates/operator.yaml)."""


def service_monitors() -> dict[str, dict[str, Any]]:
    """Specs by name, of operators whose released manifests bring none. One of what is not there finds nothing."""
    return {
        "appwrapper": _spec("appwrapper-system", {"app.kubernetes.io/name": "appwrapper"}, _SECURE),
        "kuberay": _spec(MLBATCH_NAMESPACE, {"app.kubernetes.io/name": "kuberay"}, _PLAIN),
        "training-operator": _spec(MLBATCH_NAMESPACE, {"app": "training-operator"}, _PLAIN),
    }


def pod_monitors() -> dict[str, dict[str, Any]]:
    """Specs by name, of operators whose charts bring no Service either.

    Nor does the network operator's pod declare its port, by which Prometheus would find it: its one container is found
    without (prometheus-operator v0.93.0, pkg/prometheus/promcfg.go:1570), and told where to be asked.
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
