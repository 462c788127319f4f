"""Monitoring: metrics of GPUs, nodes, queues and jobs, and alerts, by kube-prometheus-stack."""

from __future__ import annotations

import pulumi

from components.operators import Installed, Operator, Site
from operators.monitoring.component import NAME, NAMESPACE, Monitoring
from operators.monitoring.settings import MonitoringSettings


class _Monitoring(Operator[MonitoringSettings]):
    name = NAME
    title = "monitoring"
    summary = "Prometheus, Alertmanager and Grafana."
    namespace = NAMESPACE
    settings = MonitoringSettings
    keeps_files = True  # metrics and dashboards on its disks

    def install(self, site: Site, settings: MonitoringSettings, opts: pulumi.ResourceOptions) -> Installed:
        return Monitoring(self.name, site, settings, opts)


OPERATOR = _Monitoring()
