"""The simulator's charts: strict about keys, silent about nothing, and fit for the program's values."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.facts.versions import versions
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
from simulator.charts import make_schema
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
"""Charts out of Go modules, which setting up links beside the simulator's own."""
CHARTS = (*make_schema.NAMES, *UPSTREAMS)


def test_every_chart_is_rendered_with_the_programs_values() -> None:
    assert set(VALUES) == set(CHARTS), "tests/support/charts.py has the values of each"
    assert set(OBJECTS) == set(CHARTS)


def test_generated_files_are_up_to_date() -> None:
    assert make_schema.main(["--check"]) == 0


@pytest.mark.parametrize("chart", make_schema.NAMES)
def test_a_charts_version_is_the_pinned_one(chart: str) -> None:
    metadata = yaml.safe_load((make_schema.CHARTS / chart / "Chart.yaml").read_text())
    assert metadata["version"] == versions().charts[chart].version


@pytest.mark.simulator
@pytest.mark.parametrize("chart", UPSTREAMS)
def test_a_chart_out_of_a_module_is_of_the_pinned_version_with_the_keys_that_are_known_of_it(chart: str) -> None:
    metadata = yaml.safe_load((make_schema.CHARTS / chart / "Chart.yaml").read_text())
    pin = versions().charts[chart]
    assert metadata["version"] == (pin.read_from or pin.version)
    values = yaml.safe_load((make_schema.CHARTS / chart / "values.yaml").read_text())
    keys = list(make_schema.read_keys((make_schema.KEYS / f"{chart}.keys").read_text()))
    assert {path[0] for path, _, _ in keys} == set(values)
    assert not [path for path, _, _ in keys if not _has(values, path)]
    images = [(path, default) for path, _, default in keys if path[-1] in ("repository", "tag", "pullPolicy")]
    assert {default for path, default in images if reduce(getitem, path, values) != default} == set()


def _has(values: Any, path: list[str]) -> bool:
    """Whether the chart has a default there; below an empty one, whatever Kubernetes' type has."""
    return not path or not values or (path[0] in values and _has(values[path[0]], path[1:]))


def test_kubernetes_types_inside_values_are_open_and_everything_else_closed() -> None:
    keys = "a.resources.limits.memory: str = '1Gi'\na.on: bool = True\nb.nodeSelector.kubernetes.io/os: str = 'linux'\n"
    schema = make_schema.schema_of(keys)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["a"]["properties"]["resources"] == {"type": ["object", "null"]}
    assert make_schema.values_of(keys, {})["b"] == {"nodeSelector": {"kubernetes.io/os": "linux"}}


def test_an_unreadable_key_is_named() -> None:
    with pytest.raises(make_schema.KeysError, match="line 2"):
        make_schema.schema_of("a: bool\nb = 1\n")


@pytest.mark.parametrize("file", sorted(make_schema.CHARTS.glob("*/crds/*.yaml")), ids=lambda file: file.name)
def test_crds_are_structural(file: Path) -> None:
    """Every object level says its type, as the API server asks."""
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
@pytest.mark.parametrize("chart", CHARTS)
def test_lint_is_clean(chart: str, tmp_path: Path) -> None:
    code, text = helm("lint", chart, VALUES[chart], tmp_path)
    assert code == 0, text


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("chart", "wrong", "key"),
    [
        (network_operator.NAME, {"deployCR": True}, "deployCR"),
        (gpu_operator.NAME, {"driver": {"rdma": {"on": True}}}, "on"),
        (volcano.NAME, {"custom": {"scheduler_replica": 2}}, "scheduler_replica"),
        (blob_csi_driver.NAME, {"node": {"blobfuseProxy": {"blobfuseVersion": "2.2.1"}}}, "blobfuseVersion"),
    ],
)
def test_a_wrong_key_is_refused(chart: str, wrong: dict[str, Any], key: str, tmp_path: Path) -> None:
    values = make_schema.merged(VALUES[chart], wrong)
    code, text = helm("template", chart, values, tmp_path)
    assert code != 0
    assert f"additional properties '{key}' not allowed" in text


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("chart", "unsupported", "says"),
    [
        (network_operator.NAME, {"nfd": {"enabled": True}}, "nfd.enabled"),
        (gpu_operator.NAME, {"sandboxWorkloads": {"enabled": True}}, "sandboxWorkloads.enabled"),
        (volcano.NAME, {"custom": {"colocation_enable": True}}, "custom.colocation_enable"),
        (blob_csi_driver.NAME, {"node": {"enableAznfsMount": True}}, "node.enableAznfsMount"),
    ],
)
def test_what_the_simulator_does_not_do_is_refused(
    chart: str, unsupported: dict[str, Any], says: str, tmp_path: Path
) -> None:
    code, text = helm("template", chart, make_schema.merged(VALUES[chart], unsupported), tmp_path)
    assert code != 0
    assert says in text


@pytest.mark.simulator
def test_webhooks_follow_enabled_admissions(tmp_path: Path) -> None:
    values = make_schema.merged(VALUES[volcano.NAME], {"custom": {"enabled_admissions": "/jobs/mutate,/pods/mutate"}})
    _, text = helm("template", volcano.NAME, values, tmp_path)
    hooks = [obj for obj in yaml.safe_load_all(text) if obj and "WebhookConfiguration" in obj["kind"]]
    assert {hook["metadata"]["name"] for hook in hooks} == {
        "volcano-admission-service-jobs-mutate",
        "volcano-admission-service-pods-mutate",
    }
    selector = hooks[0]["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]
    assert (selector["operator"], selector["values"]) == ("NotIn", ["ns", "kube-system"])
    assert hooks[0]["webhooks"][0]["failurePolicy"] == "Fail"
