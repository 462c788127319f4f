from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from config.data.scheduling import AUTOPILOT_LABEL, GPU_RESOURCE, SPOT_LABEL, VOLCANO
from demos.chart import Chart, svg
from k8s.objects import Object, is_ready
from operators.kueue.queues import queue_name
from operators.monitoring import NAMESPACE
from operators.monitoring.files import Panel, dashboards, rules
from tests.e2e.team_jobs import QUEUED, apply, shared_stack
from tests.support.manifests import manifest
from tests.support.sizes import H100
from tests.support.world import CommandFailed, Stack, eventually, gpu_nodes, names

pytestmark = [pytest.mark.simulator, pytest.mark.charts, pytest.mark.long]
SERVICE = "prometheus-kube-prometheus-prometheus"
POD = f"prometheus-{SERVICE}-0"
JOB = "train"
POOLS = {"gpu": {"vmSku": H100, "count": 1}, "spot": {"vmSku": H100, "count": 1, "spot": True}}
STEP_S = 15
WORKLOAD = ("kueue.x-k8s.io/v1beta2", "Workload")


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    operators = {name: {"enabled": True} for name in ("kubePrometheusStack", "kueue", "autopilot")}
    teams = {"blue": {"gpus": 8, "users": ["alice"]}}
    pools = {"vmSku": None, "nodeCount": None, "pools": POOLS}
    return shared_stack(new_stack, "monitoring", nodes=2, operators=operators, teams=teams, **pools)


@pytest.fixture(scope="module")
def begun() -> float:
    return time.time()


def node_of_jobs(stack: Stack) -> str:
    (name,) = names(node for node in gpu_nodes(stack.kube) if SPOT_LABEL not in node["metadata"]["labels"])
    return name


def query_api(stack: Stack, path: str, **parameters: str) -> Any:
    found = stack.kube.raw(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}:http-web/proxy/api/v1/{path}", params=parameters
    )
    return found["data"]


def series(stack: Stack, query: str) -> list[dict[str, str]]:
    return [each["metric"] for each in query_api(stack, "query", query=query)["result"]]


def alerts(stack: Stack, name: str) -> list[Object]:
    return [each for each in query_api(stack, "alerts")["alerts"] if each["labels"]["alertname"] == name]


def training_pod(**more: Any) -> Object:
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}
    return {"schedulerName": VOLCANO, "restartPolicy": "Never", "containers": [container], **more}


def submit(stack: Stack, name: str) -> None:
    spec = {"template": {"spec": training_pod(priorityClassName="default-priority")}}
    stack.kube.create(manifest("batch/v1", "Job", name, "blue", labels=QUEUED, spec=spec))


def test_a_second_up_changes_nothing(stack: Stack, begun: float) -> None:
    stack.up("--expect-no-changes")


def test_prometheus_runs_with_its_data_on_disks(stack: Stack) -> None:
    eventually(lambda: stack.kube.find("v1", "Pod", POD, NAMESPACE) is not None, "the operator has created it", 120)

    def ready() -> bool:
        pod = stack.kube.get("v1", "Pod", POD, NAMESPACE)
        return is_ready(pod) and "reason" not in pod["status"]

    eventually(ready, "Prometheus is ready", 300)
    claims = stack.kube.list("v1", "PersistentVolumeClaim", NAMESPACE)
    sizes = {each["spec"]["resources"]["requests"]["storage"] for each in claims}
    assert sizes == {"50Gi", "20Gi"}
    assert {each["spec"]["storageClassName"] for each in claims} == {"managed-csi"}
    assert {each["status"]["phase"] for each in claims} == {"Bound"}
    assert len(claims) == 3


def test_all_scrape_targets_are_up(stack: Stack) -> None:
    wanted = {
        "autopilot-metrics-service",
        "kube-state-metrics",
        "kueue-controller-manager-metrics-service",
        "monitoring/network-operator",
        "node-exporter",
        "nvidia-dcgm-exporter",
    }
    eventually(lambda: wanted <= {each["job"] for each in series(stack, "up == 1")}, "they are up", 180)


def test_gpu_metrics_have_the_namespace_and_pod_of_the_job(stack: Stack) -> None:
    spec = training_pod(tolerations=[{"key": "sku", "operator": "Exists"}])
    stack.kube.create(manifest("v1", "Pod", JOB, "default", spec=spec))
    query = f'DCGM_FI_DEV_GPU_UTIL{{exported_namespace="default",exported_pod="{JOB}"}} > 90'
    eventually(lambda: len(series(stack, query)) == 8, "eight busy GPUs", 120)
    labels = f'resource="nvidia_com_gpu",namespace="default",pod="{JOB}"'
    requested = f"kube_pod_container_resource_requests{{{labels}}} == 8"
    eventually(lambda: series(stack, requested) != [], "requested GPUs", 90)


def test_the_queues_quota_is_a_metric(stack: Stack) -> None:
    query = 'kueue_cluster_queue_nominal_quota{resource="nvidia.com/gpu"} == 8'
    eventually(lambda: series(stack, query) != [], "Kueue's quota of the team", 90)


def test_waiting_and_evicted_jobs_are_counted(stack: Stack) -> None:
    submit(stack, "first")
    eventually(lambda: series(stack, "kueue_admitted_active_workloads == 1") != [], "the first is admitted", 90)
    submit(stack, "second")
    waits = f'sum(kueue_pending_workloads{{cluster_queue="{queue_name("blue")}"}}) == 1'
    eventually(lambda: series(stack, waits) != [], "the second waits", 90)
    workloads = names(stack.kube.list(*WORKLOAD, "blue"))
    (first,) = (name for name in workloads if name.startswith("job-first-"))
    stack.kube.patch(*WORKLOAD, first, "blue", {"spec": {"active": False}})
    eventually(lambda: series(stack, "kueue_evicted_workloads_total > 0") != [], "the first is evicted", 90)


def test_a_gpu_off_the_bus_fires_an_alert_with_the_gpu_and_the_job(stack: Stack) -> None:
    node = node_of_jobs(stack)
    assert alerts(stack, "GPUFailed") == []
    stack.world.simulator("fault", "gpu", "--node", node, "--device", "5")
    eventually(lambda: [each["state"] for each in alerts(stack, "GPUFailed")] == ["firing"], "the alert", 150)
    (alert,) = alerts(stack, "GPUFailed")
    assert (alert["labels"]["Hostname"], alert["labels"]["gpu"]) == (node, "5")
    assert "Xid 79" in alert["annotations"]["summary"]
    assert f"default/{JOB}" in alert["annotations"]["description"]


def test_the_alert_ends_with_the_fault(stack: Stack) -> None:
    stack.world.simulator("heal")
    eventually(lambda: alerts(stack, "GPUFailed") == [], "no alert", 150)


def test_a_hot_gpu_gives_a_warning_of_autopilot_and_an_alert(stack: Stack) -> None:
    node = node_of_jobs(stack)

    def label() -> str | None:
        found: str | None = stack.kube.get("v1", "Node", node)["metadata"]["labels"].get(AUTOPILOT_LABEL)
        return found

    eventually(lambda: label() == "PASS", "autopilot has checked the node", 120)
    stack.world.simulator("fault", "thermal", "--node", node, "--device", "2")
    eventually(lambda: label() == "WARN", "the node's warning", 60)
    eventually(lambda: alerts(stack, "AutopilotCheckFailed") != [], "the alert, pending or firing", 120)
    (alert,) = alerts(stack, "AutopilotCheckFailed")
    labels = {"node": node, "health": "power-slowdown", "deviceid": "2"}
    assert labels.items() <= alert["labels"].items()
    warning = 'kube_node_labels{label_autopilot_ibm_com_gpuhealth="WARN"}'
    eventually(lambda: series(stack, warning) != [], "the label is a metric", 90)
    stack.world.simulator("heal")
    eventually(lambda: label() == "PASS", "the node's warning is over", 60)


def test_a_link_that_is_down_fires_an_alert(stack: Stack) -> None:
    node = node_of_jobs(stack)
    stack.world.simulator("fault", "hca", "--node", node, "--device", "mlx5_3")
    eventually(lambda: len(alerts(stack, "InfiniBandLinkDown")) == 1, "the alert, pending or firing", 120)
    (alert,) = alerts(stack, "InfiniBandLinkDown")
    # One scrape can fall between two points of a panel, which is drawn later.
    drawn = 'count_over_time((node_infiniband_state_id{device="mlx5_3"} != 4)[2m:15s]) > 3'
    eventually(lambda: series(stack, drawn) != [], "the panels show it", 150)
    stack.world.simulator("heal")
    assert alert["labels"]["device"] == "mlx5_3"


def shown(stack: Stack, panel: Panel, begun: float) -> list[dict[str, str]]:
    span = {"start": f"{begun:.0f}", "end": f"{time.time():.0f}", "step": str(STEP_S)}
    found = query_api(stack, "query_range", query=panel.query, **span)["result"]
    return [each["metric"] for each in found if any(float(value) == float(value) for _, value in each["values"])]


@pytest.mark.parametrize(("name", "title"), [(n, p.title) for n, d in dashboards().items() for p in d.panels])
def test_each_panel_of_each_dashboard_has_data(stack: Stack, begun: float, name: str, title: str) -> None:
    (panel,) = (panel for panel in dashboards()[name].panels if panel.title == title)
    eventually(lambda: shown(stack, panel, begun) != [], "it has data", 60)
    named = set(re.findall(r"{{(\w+)}}", panel.legend))
    assert all(named <= set(labels) or not labels for labels in shown(stack, panel, begun))


@pytest.mark.parametrize("name", dashboards())
def test_each_dashboard_is_drawn(stack: Stack, begun: float, name: str) -> None:
    """Writes the docs' pictures into the folder PICTURES (`docs/dashboards`), if set."""
    charts = [chart(stack, panel, begun) for panel in dashboards()[name].panels]
    folder = Path(os.environ.get("PICTURES", stack.folder))
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text(svg(charts, columns=2), encoding="utf-8")
    assert all(any(value is not None for values in each.series.values() for value in values) for each in charts)


def chart(stack: Stack, panel: Panel, begun: float) -> Chart:
    first, last = int(begun), int(time.time())
    span = {"start": f"{first}", "end": f"{last}", "step": str(STEP_S)}
    series = {}
    for each in query_api(stack, "query_range", query=panel.query, **span)["result"]:
        name = _legend(panel, each["metric"])
        values = {int(float(at)): float(value) for at, value in each["values"]}
        series[name] = [_number(values.get(at)) for at in range(first, last + 1, STEP_S)]
    return Chart(panel.title, series, STEP_S, stacked=panel.stacked)


def _legend(panel: Panel, labels: dict[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), panel.legend)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def test_all_rules_are_loaded(stack: Stack) -> None:
    loaded = [rule for group in query_api(stack, "rules")["groups"] for rule in group["rules"]]
    ours = {rule["alert"] for group in rules()["groups"] for rule in group["rules"]}
    assert ours <= {rule["name"] for rule in loaded}
    assert {rule["health"] for rule in loaded} <= {"ok", "unknown"}


def test_the_operator_rejects_an_invalid_rule(stack: Stack) -> None:
    rule = {"alert": "Wrong", "expr": "sum by ("}
    spec = {"groups": [{"name": "wrong", "rules": [rule]}]}
    with pytest.raises(CommandFailed, match="is invalid"):
        apply(stack, manifest("monitoring.coreos.com/v1", "PrometheusRule", "wrong", spec=spec), "default")


def test_services_and_the_password_exist(stack: Stack) -> None:
    for name in ("prometheus-grafana", SERVICE, "prometheus-kube-prometheus-alertmanager"):
        stack.kube.get("v1", "Service", name, NAMESPACE)
    password = partial(stack.kube.get, "v1", "Secret", "prometheus-grafana", NAMESPACE)
    assert len(password()["data"]["admin-password"]) > 20
