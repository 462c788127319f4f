"""What monitoring tells its chart and Prometheus, and the settings that it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from config.facts.scheduling import AGENT_POOL_LABEL, SPOT_LABEL, SYSTEM_NODES, SYSTEM_TOLERATIONS
from operators import monitoring
from operators.monitoring import MonitoringSettings, files
from operators.monitoring.files import pod_monitors, service_monitors


def claims(made: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Class and size of each disk."""
    grafana = made["grafana"]["persistence"]
    found = {
        "prometheus": made["prometheus"]["prometheusSpec"]["storageSpec"],
        "alertmanager": made["alertmanager"]["alertmanagerSpec"]["storage"],
    }
    specs = {name: each["volumeClaimTemplate"]["spec"] for name, each in found.items()}
    return {
        **{name: (each["storageClassName"], each["resources"]["requests"]["storage"]) for name, each in specs.items()},
        "grafana": (grafana["storageClassName"], grafana["size"]),
    }


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert MonitoringSettings().enabled is False


def test_disks_are_of_the_class_of_the_settings() -> None:
    assert claims(monitoring.values("fast")) == {
        "prometheus": ("fast", "50Gi"),
        "alertmanager": ("fast", "50Gi"),
        "grafana": ("fast", "20Gi"),
    }


@pytest.mark.parametrize("path", [("prometheus", "prometheusSpec"), ("alertmanager", "alertmanagerSpec")])
def test_disks_stay_when_what_wrote_them_goes(path: tuple[str, str]) -> None:
    part, spec = path
    kept = monitoring.values("fast")[part][spec]["persistentVolumeClaimRetentionPolicy"]
    assert kept == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_grafana_is_a_stateful_set_whose_disk_stays() -> None:
    assert monitoring.values("fast")["grafana"]["persistence"]["type"] == "sts"


def test_prometheus_ends_its_history_before_its_disk_is_full() -> None:
    spec = monitoring.values("fast")["prometheus"]["prometheusSpec"]
    disk = spec["storageSpec"]["volumeClaimTemplate"]["spec"]["resources"]["requests"]["storage"]
    assert int(spec["retentionSize"].removesuffix("GiB")) < int(disk.removesuffix("Gi"))


def test_it_runs_on_system_nodes_so_that_it_takes_no_room_of_gpus() -> None:
    made = monitoring.values("fast")
    parts = [
        made["prometheusOperator"],
        made["prometheus"]["prometheusSpec"],
        made["alertmanager"]["alertmanagerSpec"],
        made["grafana"],
        made["kube-state-metrics"],
    ]
    assert all((each["nodeSelector"], each["tolerations"]) == (SYSTEM_NODES, SYSTEM_TOLERATIONS) for each in parts)


def test_what_azure_manages_is_not_asked() -> None:
    made = monitoring.values("fast")
    for part in ("kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy"):
        assert made[part] == {"enabled": False}


def test_nodes_are_asked_at_the_port_at_which_their_exporter_listens() -> None:
    assert monitoring.values("fast")["prometheus-node-exporter"]["service"] == {"port": 9110, "targetPort": 9110}


def test_monitors_of_all_namespaces_count() -> None:
    spec = monitoring.values("fast")["prometheus"]["prometheusSpec"]
    assert spec["serviceMonitorSelectorNilUsesHelmValues"] is False
    assert spec["ruleSelectorNilUsesHelmValues"] is False


def test_each_monitor_asks_one_namespace_only() -> None:
    for spec in (*service_monitors().values(), *pod_monitors().values()):
        assert len(spec["namespaceSelector"]["matchNames"]) == 1
        assert spec["selector"]["matchLabels"]


def test_the_network_operator_is_asked_at_its_pods_address_as_it_declares_no_port() -> None:
    (endpoint,) = pod_monitors()["network-operator"]["podMetricsEndpoints"]
    assert "port" not in endpoint
    (address,) = endpoint["relabelings"]
    assert (address["targetLabel"], address["replacement"]) == ("__address__", "$1:8080")


def test_each_alert_says_how_bad_it_is_and_what_happened() -> None:
    found = [rule for group in files.rules()["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]


@pytest.mark.parametrize("name", ["azurefile", "azurefile-csi-premium", "azureblob-nfs-premium"])
def test_a_class_of_shares_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="a class of shares, on which Prometheus's data do not keep"):
        MonitoringSettings(storage_class=name)


@pytest.mark.parametrize("name", ["", "Fast", "fast_disks", "-fast", "f" * 254])
def test_what_is_no_name_of_a_class_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        MonitoringSettings(storage_class=name)


@pytest.mark.parametrize("name", list(files.dashboards()))
def test_a_dashboard_is_what_grafana_imports(name: str) -> None:
    dashboard = files.dashboards()[name]
    made = json.loads(files.grafana_json(name, dashboard))
    assert (made["uid"], made["title"]) == (f"ai-on-aks-{name}", dashboard.title)
    assert [each["targets"][0]["expr"] for each in made["panels"]] == [panel.query for panel in dashboard.panels]
    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in made["panels"]}
    assert len(places) == len(made["panels"])


@pytest.mark.parametrize("panel", [panel for each in files.dashboards().values() for panel in each.panels])
def test_series_are_called_by_labels_that_their_query_speaks_of(panel: files.Panel) -> None:
    named = set(re.findall(r"{{(\w+)}}", panel.legend))
    if grouped := re.match(r"\w+ by \(([^)]*)\)", panel.query):
        assert named <= set(grouped[1].split(", "))


def test_dashboards_ask_for_labels_of_nodes_that_kube_state_metrics_is_told_to_give() -> None:
    """It gives others none, and writes what is no letter or digit as `_` (v2.20.0, internal/store/utils.go)."""
    (allowed,) = monitoring.values("fast")["kube-state-metrics"]["metricLabelsAllowlist"]
    given = {re.sub(r"\W", "_", f"label_{name}") for name in re.findall(r"[\w./-]+(?=[],])", allowed)}
    asked = {name for each in files.dashboards().values() for panel in each.panels for name in _labels(panel)}
    assert {re.sub(r"\W", "_", f"label_{name}") for name in (AGENT_POOL_LABEL, SPOT_LABEL)} <= asked
    assert asked <= given


def _labels(panel: files.Panel) -> list[str]:
    return re.findall(r"\blabel_\w+", f"{panel.query} {panel.legend}")


def test_ports_of_infiniband_are_asked_for_and_not_that_of_ethernet() -> None:
    rules = [rule["expr"] for group in files.rules()["groups"] for rule in group["rules"]]
    panels = [panel.query for each in files.dashboards().values() for panel in each.panels]
    asked = re.findall(r"\bnode_infiniband_\w+(\S*)", " ".join([*rules, *panels]))
    assert asked
    assert all(each.startswith('{device=~"mlx5_[0-7]"}') for each in asked)


def test_dashboards_of_others_are_fetched_only_where_images_come_from_outside() -> None:
    published = monitoring.values("fast")["grafana"]["dashboards"]["published"]
    assert {each["gnetId"] for each in published.values()} == {12239, 23123}
    assert "dashboards" not in monitoring.values("fast", published=False)["grafana"]
