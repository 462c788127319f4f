"""Monitoring by kube-prometheus-stack: metrics of GPUs, nodes, queues and jobs, with dashboards and alerts."""

from __future__ import annotations

from typing import Annotated, Any

import pulumi
import pulumi_kubernetes as kubernetes
from pydantic import AfterValidator

from components.operators import InstallContext, Installed, Operator
from config.data.scheduling import AGENT_POOL_LABEL, ANY_TAINT, AUTOPILOT_LABEL, ON_SYSTEM_POOL, SPOT_LABEL
from config.data.storage_classes import aks_classes
from config.schema.base import may_be, unfit
from config.schema.operators import MONITORING, ChartSettings
from config.schema.storage import SHARED_CLASS, ClassName
from operators._lib.release import Values, release
from operators.monitoring.files import API, dashboards, grafana_json, pod_monitors, rules, service_monitors

DISKS = "managed-csi"
"""AKS's class of Standard SSDs (aks-docs, concepts-storage.md)."""
NAME = MONITORING
NAMESPACE = "monitoring"
RELEASE = "prometheus"
"""The value of the label `release` of Autopilot's ServiceMonitor, which Autopilot's chart cannot change."""
NODE_EXPORTER_PORT = 9110
"""A port on the node (host network). The default, 9100, may be in use by another node exporter."""
_PROMETHEUS_GI, _ALERTMANAGER_GI, _GRAFANA_GI = 50, 50, 20
PUBLISHED = (("nvidia-dcgm-exporter", 12239, 2), ("autopilot", 23123, 1))
_NODE_LABELS = (AGENT_POOL_LABEL, SPOT_LABEL, AUTOPILOT_LABEL)


def _require_disks(name: str) -> str:
    """Rejects classes of file shares: Prometheus supports neither NFS nor non-POSIX file systems (its storage.md)."""
    if name in (SHARED_CLASS, *aks_classes().files, *aks_classes().blobs):
        raise unfit(f"is {name}, a class of file shares, which Prometheus does not support", DISKS)
    return name


class MonitoringSettings(ChartSettings):
    """Settings of monitoring. It is off by default, because it needs three disks, and resources of the system pool."""

    enabled: bool = False
    """Whether the stack installs it."""
    storage_class: Annotated[
        ClassName,
        may_be(f"a storage class of disks, as in {DISKS}"),
        AfterValidator(_require_disks),
    ] = DISKS
    """The storage class of the disks of Prometheus, Alertmanager and Grafana. The disks stay when monitoring is
    removed. Once they exist, the cluster rejects another class.
    """


class Monitoring(Installed[MonitoringSettings]):
    """The Helm release, and the monitors and rules, which need the release's CRDs."""

    def create(self, context: InstallContext, settings: MonitoringSettings) -> None:
        own = values(settings.storage_class, published=not context.settings.images.registry)
        installed = release(NAME, context, parent=self, values=own, user_values=settings.values, called=RELEASE)
        self.followed = [installed]
        after = self.child(depends_on=[installed])
        for monitored, spec in service_monitors().items():
            _custom("ServiceMonitor", monitored, spec, after)
        for monitored, spec in pod_monitors().items():
            _custom("PodMonitor", monitored, spec, after)
        _custom("PrometheusRule", "ai-on-aks", rules(), after)
        self._dashboards(after)
        self.outputs = {"monitoring": commands()}

    def _dashboards(self, opts: pulumi.ResourceOptions) -> None:
        for name, dashboard in dashboards().items():
            metadata = {"name": f"dashboard-{name}", "namespace": NAMESPACE, "labels": {"grafana_dashboard": "1"}}
            data = {f"{name}.json": grafana_json(name, dashboard)}
            kubernetes.core.v1.ConfigMap(f"dashboard-{name}", metadata=metadata, data=data, opts=opts)


def _custom(kind: str, name: str, spec: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
    metadata = {"name": name, "namespace": NAMESPACE}
    kubernetes.apiextensions.CustomResource(name, api_version=API, kind=kind, metadata=metadata, spec=spec, opts=opts)


def values(storage_class: str, *, published: bool = True) -> Values:
    """Returns values of the chart, without components that AKS manages, and with monitors of all namespaces.

    If `published`, Grafana downloads dashboards from grafana.com when it starts. If the downloads fail, it waits a
    minute for each and starts without them (grafana/helm-charts, _config.tpl: the exit code comes from sed, not curl).
    """
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    disk = {"persistentVolumeClaimRetentionPolicy": kept}
    of_all = ("serviceMonitor", "podMonitor", "rule", "probe", "scrapeConfig")
    webhook = {"admissionWebhooks": {"patch": ON_SYSTEM_POOL}}
    spec = {
        **{f"{each}SelectorNilUsesHelmValues": False for each in of_all},
        **disk,
        **ON_SYSTEM_POOL,
        "retentionSize": f"{_PROMETHEUS_GI * 9 // 10}GiB",  # a full disk ends Prometheus
        "storageSpec": _claim(storage_class, _PROMETHEUS_GI),
    }
    return {
        "crds": {"enabled": True},
        **{part: {"enabled": False} for part in ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy")},
        "prometheusOperator": {**ON_SYSTEM_POOL, **webhook},
        "prometheus": {"prometheusSpec": spec},
        "alertmanager": {
            "alertmanagerSpec": {**disk, **ON_SYSTEM_POOL, "storage": _claim(storage_class, _ALERTMANAGER_GI)}
        },
        "grafana": {
            **ON_SYSTEM_POOL,
            "persistence": _grafana_disk(storage_class),
            **(_published_dashboards() if published else {}),
        },
        "kube-state-metrics": {**ON_SYSTEM_POOL, "metricLabelsAllowlist": [f"nodes=[{','.join(_NODE_LABELS)}]"]},
        # The port of node-exporter's pods (templates/daemonset.yaml), and the target port of their Service.
        "prometheus-node-exporter": {
            "service": {"port": NODE_EXPORTER_PORT, "targetPort": NODE_EXPORTER_PORT},
            "tolerations": ANY_TAINT,
        },
    }


def _claim(storage_class: str, gi: int) -> Values:
    size = {"requests": {"storage": f"{gi}Gi"}}
    spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": size}
    return {"volumeClaimTemplate": {"spec": spec}}


def _grafana_disk(storage_class: str) -> Values:
    """Returns values for the claim of a StatefulSet, which stays when the StatefulSet is deleted."""
    return {
        "enabled": True,
        "type": "sts",
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "size": f"{_GRAFANA_GI}Gi",
    }


def _published_dashboards() -> Values:
    # These dashboards have a variable for their data source, as a text or in a map. With a list here, the chart
    # replaces both forms; with a text, only texts.
    source = {"datasource": [{"name": "DS_PROMETHEUS", "value": "prometheus"}]}
    found = {name: {"gnetId": number, "revision": revision, **source} for name, number, revision in PUBLISHED}
    folder = "published"
    provider = {
        "name": folder,
        "folder": "Published",
        "type": "file",
        "options": {"path": f"/var/lib/grafana/dashboards/{folder}"},
    }
    providers = {"dashboardproviders.yaml": {"apiVersion": 1, "providers": [provider]}}
    return {"dashboardProviders": providers, "dashboards": {folder: found}}


def commands() -> dict[str, str]:
    """Returns commands that open each page on this machine. The chart creates Grafana's password once, in a Secret."""
    forward = f"kubectl port-forward -n {NAMESPACE} svc/{RELEASE}"
    secret = f"kubectl get secret -n {NAMESPACE} {RELEASE}-grafana -o jsonpath='{{.data.admin-password}}'"
    return {
        "grafana": f"{forward}-grafana 3000:80",
        "grafanaPassword": f"{secret} | base64 -d",
        "prometheus": f"{forward}-kube-prometheus-prometheus 9090:9090",
        "alertmanager": f"{forward}-kube-prometheus-alertmanager 9093:9093",
    }


class _Monitoring(Operator[MonitoringSettings]):
    name = NAME
    title = "monitoring"
    summary = "Prometheus, Alertmanager and Grafana."
    namespace = NAMESPACE
    settings = MonitoringSettings
    component = Monitoring
    keeps_files = True  # metrics and dashboards on its disks


OPERATOR = _Monitoring()
