from __future__ import annotations

from ast import literal_eval
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.chart_values import own_keys
from config.data.versions import versions
from operators import (
    autopilot,
    blob_csi_driver,
    gpu_operator,
    kueue,
    monitoring,
    network_operator,
    nfd,
    scheduler_plugins,
    volcano,
)
from operators import nfs_subdir_external_provisioner as nfs_provisioner
from simulator.charts import make_values
from simulator.tools import catalogue
from tests.support.charts import VALUES, helm

OBJECTS = {
    nfd.NAME: {"DaemonSet node-feature-discovery-worker", "Deployment node-feature-discovery-master"},
    network_operator.NAME: {"Deployment network-operator", "Job network-operator-upgrade-crd"},
    gpu_operator.NAME: {"Deployment gpu-operator", "ClusterPolicy cluster-policy"},
    volcano.NAME: {"Deployment volcano-scheduler", "Job volcano-admission-init", "Service volcano-admission-service"},
    kueue.NAME: {"Deployment kueue-controller-manager", "APIService v1beta2.visibility.kueue.x-k8s.io"},
    scheduler_plugins.NAME: {"Deployment scheduler-plugins-scheduler", "Deployment scheduler-plugins-controller"},
    blob_csi_driver.NAME: {
        "CSIDriver blob.csi.azure.com",
        "DaemonSet csi-blob-node",
        "Deployment csi-blob-controller",
        "ClusterRole csi-blob-node-secret-role",
    },
    autopilot.NAME: {"DaemonSet autopilot", "Service autopilot-metrics-service", "ClusterRole autopilot"},
    monitoring.NAME: {
        "Deployment prometheus-kube-state-metrics",
        "StatefulSet prometheus-grafana",
        "DaemonSet prometheus-prometheus-node-exporter",
    },
    nfs_provisioner.NAME: {"Deployment pokprod-nfs-subdir-external-provisioner", "StorageClass nfs-client-pokprod"},
}


UPSTREAMS = tuple(tool.name for tool in catalogue.load().tools if tool.chart)
"""The setup links these charts from Go modules next to the simulator's own."""
CHARTS = (*make_values.NAMES, *UPSTREAMS)


def test_generated_files_are_up_to_date() -> None:
    assert make_values.main(["--check"]) == 0


@pytest.mark.parametrize("chart", make_values.NAMES)
def test_a_chart_has_the_pinned_version(chart: str) -> None:
    metadata = yaml.safe_load((make_values.CHARTS / chart / "Chart.yaml").read_text())
    assert metadata["version"] == versions().charts[chart].version


@pytest.mark.simulator
@pytest.mark.parametrize("chart", UPSTREAMS)
def test_a_chart_from_a_module_has_the_pinned_version_and_known_keys(chart: str) -> None:
    metadata = yaml.safe_load((make_values.CHARTS / chart / "Chart.yaml").read_text())
    pin = versions().charts[chart]
    assert metadata["version"] == (pin.read_from or pin.version)
    values = yaml.safe_load((make_values.CHARTS / chart / "values.yaml").read_text())
    keys = own_keys(chart)
    assert {key.path[0] for key in keys} == set(values)
    assert not [key.path for key in keys if not _has(values, key.path)]
    images = [
        (key.path, literal_eval(key.default or make_values.EMPTY[key.kind]))
        for key in keys
        if key.path[-1] in ("repository", "tag", "pullPolicy")
    ]
    assert {default for path, default in images if reduce(getitem, path, values) != default} == set()


def _has(values: Any, path: Sequence[str]) -> bool:
    return not path or not values or (path[0] in values and _has(values[path[0]], path[1:]))


@pytest.mark.parametrize("file", sorted(make_values.CHARTS.glob("*/crds/*.yaml")), ids=lambda file: file.name)
def test_crds_are_structural(file: Path) -> None:
    for crd in yaml.safe_load_all(file.read_text()):
        for version in crd["spec"]["versions"]:
            _check_structural(version["schema"]["openAPIV3Schema"], crd["metadata"]["name"])


def _check_structural(schema: dict[str, Any], path: str) -> None:
    assert "type" in schema or "x-kubernetes-int-or-string" in schema, path
    for name, child in schema.get("properties", {}).items():
        _check_structural(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _check_structural(schema[key], f"{path}.{key}")


@pytest.mark.simulator
@pytest.mark.parametrize("chart", CHARTS)
def test_the_programs_values_render(chart: str, tmp_path: Path) -> None:
    code, text = helm("template", chart, VALUES[chart], tmp_path)
    assert code == 0, text
    rendered = {f"{obj['kind']} {obj['metadata']['name']}" for obj in yaml.safe_load_all(text) if obj}
    assert rendered >= OBJECTS[chart]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("chart", "unsupported", "key"),
    [
        (network_operator.NAME, {"nfd": {"enabled": True}}, "nfd.enabled"),
        (gpu_operator.NAME, {"sandboxWorkloads": {"enabled": True}}, "sandboxWorkloads.enabled"),
        (volcano.NAME, {"custom": {"colocation_enable": True}}, "custom.colocation_enable"),
        (blob_csi_driver.NAME, {"node": {"enableAznfsMount": True}}, "node.enableAznfsMount"),
    ],
)
def test_rejects_values_that_are_not_simulated(
    chart: str, unsupported: dict[str, Any], key: str, tmp_path: Path
) -> None:
    code, text = helm("template", chart, make_values.merged(VALUES[chart], unsupported), tmp_path)
    assert code != 0
    assert key in text


@pytest.mark.simulator
def test_webhooks_follow_enabled_admissions(tmp_path: Path) -> None:
    values = make_values.merged(VALUES[volcano.NAME], {"custom": {"enabled_admissions": "/jobs/mutate,/pods/mutate"}})
    _, text = helm("template", volcano.NAME, values, tmp_path)
    hooks = [obj for obj in yaml.safe_load_all(text) if obj and "WebhookConfiguration" in obj["kind"]]
    assert {hook["metadata"]["name"] for hook in hooks} == {
        "volcano-admission-service-jobs-mutate",
        "volcano-admission-service-pods-mutate",
    }
    selector = hooks[0]["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]
    assert (selector["operator"], selector["values"]) == ("NotIn", ["ns", "kube-system"])
    assert hooks[0]["webhooks"][0]["failurePolicy"] == "Fail"
