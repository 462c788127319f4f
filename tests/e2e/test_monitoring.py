"""Monitoring: the real Prometheus collects what happens on simulated GPUs, and its rules raise alerts.

One story, told in the order of the file; its stack has two nodes of eight GPUs, one of them Spot.
"""

from __future__ import annotations

import json
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
from k8s.objects import Object, condition
from operators.kueue.queues import queue_name
from operators.monitoring import NAMESPACE, commands
from operators.monitoring.files import Panel, dashboards, rules
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
    begin = {"vmSku": None, "nodeCount": None, "pools": POOLS, "workloads": ""}
    made = new_stack("monitoring", **begin, operators=operators, teams=teams)
    made.up()
    eventually(lambda: [gpus(node) for node in gpu_nodes(made.kube)] == [8, 8], "GPUs", 300)
    return made


@pytest.fixture(scope="module")
def begun() -> float:
    """When the story began, in seconds since 1970."""
    return time.time()


def gpus(node: Object) -> int:
    return int(node["status"]["allocatable"].get(GPU_RESOURCE, 0))


def node_of_jobs(stack: Stack) -> str:
    """The one that is no Spot node."""
    (name,) = names(node for node in gpu_nodes(stack.kube) if SPOT_LABEL not in node["metadata"]["labels"])
    return name


def asked(stack: Stack, path: str, **parameters: str) -> Any:
    """What Prometheus's HTTP API answers, by the API server's proxy to its Service."""
    found = stack.kube.raw(
        "GET", f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}:http-web/proxy/api/v1/{path}", params=parameters
    )
    return found["data"]


def series(stack: Stack, query: str) -> list[dict[str, str]]:
    """Labels of what a query finds now."""
    return [each["metric"] for each in asked(stack, "query", query=query)["result"]]


def alerts(stack: Stack, name: str) -> list[Object]:
    return [each for each in asked(stack, "alerts")["alerts"] if each["labels"]["alertname"] == name]


def queued(stack: Stack, name: str) -> None:
    """A job of the team's, for all of its quota."""
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}
    pod = {"schedulerName": VOLCANO, "restartPolicy": "Never", "containers": [container]}
    pod["priorityClassName"] = "default-priority"
    labels = {"kueue.x-k8s.io/queue-name": "default-queue"}
    metadata = {"name": name, "namespace": "blue", "labels": labels}
    stack.kube.create(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}
    )


def test_nothing_is_left_to_do(stack: Stack, begun: float) -> None:
    stack.up("--expect-no-changes")


def test_the_operator_has_made_prometheus_which_is_real_and_keeps_its_data_on_a_disk(stack: Stack) -> None:
    eventually(lambda: stack.kube.find("v1", "Pod", POD, NAMESPACE) is not None, "the operator has made its pod", 120)

    def ready() -> bool:
        pod = stack.kube.get("v1", "Pod", POD, NAMESPACE)
        return condition(pod, "Ready").get("status") == "True" and "reason" not in pod["status"]

    eventually(ready, "Prometheus is ready", 300)
    claims = stack.kube.list("v1", "PersistentVolumeClaim", NAMESPACE)
    sizes = {each["spec"]["resources"]["requests"]["storage"] for each in claims}
    assert sizes == {"50Gi", "20Gi"}
    assert {each["spec"]["storageClassName"] for each in claims} == {"managed-csi"}
    assert {each["status"]["phase"] for each in claims} == {"Bound"}
    assert len(claims) == 3


def test_what_it_is_told_to_ask_answers(stack: Stack) -> None:
    wanted = {
        "autopilot-metrics-service",
        "kube-state-metrics",
        "kueue-controller-manager-metrics-service",
        "monitoring/network-operator",
        "node-exporter",
        "nvidia-dcgm-exporter",
    }
    eventually(lambda: wanted <= {each["job"] for each in series(stack, "up == 1")}, "they are up", 180)


def test_a_jobs_gpus_are_told_by_its_namespace_and_pod(stack: Stack) -> None:
    container = {"name": "main", "image": "example.com/train:1", "resources": {"limits": {GPU_RESOURCE: 8}}}
    pod = {"schedulerName": VOLCANO, "restartPolicy": "Never", "containers": [container]}
    pod["tolerations"] = [{"key": "sku", "operator": "Exists"}]
    stack.kube.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": JOB, "namespace": "default"},
            "spec": pod,
        }
    )
    query = f'DCGM_FI_DEV_GPU_UTIL{{exported_namespace="default",exported_pod="{JOB}"}} > 90'
    eventually(lambda: len(series(stack, query)) == 8, "eight busy GPUs", 120)
    asked_for = (
        f'kube_pod_container_resource_requests{{resource="nvidia_com_gpu",namespace="default",pod="{JOB}"}} == 8'
    )
    eventually(lambda: series(stack, asked_for) != [], "what it asked for", 90)


def test_the_queues_quota_is_told(stack: Stack) -> None:
    query = 'kueue_cluster_queue_nominal_quota{resource="nvidia.com/gpu"} == 8'
    eventually(lambda: series(stack, query) != [], "Kueue's quota of the team", 90)


def test_a_job_that_waits_and_one_that_is_evicted_are_told(stack: Stack) -> None:
    queued(stack, "first")
    eventually(lambda: series(stack, "kueue_admitted_active_workloads == 1") != [], "the first is admitted", 90)
    queued(stack, "second")
    waits = f'sum(kueue_pending_workloads{{cluster_queue="{queue_name("blue")}"}}) == 1'
    eventually(lambda: series(stack, waits) != [], "the second waits", 90)
    workloads = names(stack.kube.list(*WORKLOAD, "blue"))
    (first,) = (name for name in workloads if name.startswith("job-first-"))
    stack.kube.patch(*WORKLOAD, first, "blue", {"spec": {"active": False}})
    eventually(lambda: series(stack, "kueue_evicted_workloads_total > 0") != [], "the first is evicted", 90)


def test_a_gpu_that_falls_off_the_bus_raises_an_alert_that_names_it_and_the_job(stack: Stack) -> None:
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


def test_a_gpu_that_is_too_hot_is_a_warning_of_autopilots_and_an_alert(stack: Stack) -> None:
    node = node_of_jobs(stack)

    def label() -> str | None:
        found: str | None = stack.kube.get("v1", "Node", node)["metadata"]["labels"].get(AUTOPILOT_LABEL)
        return found

    eventually(lambda: label() == "PASS", "it has checked the node", 120)
    stack.world.simulator("fault", "thermal", "--node", node, "--device", "2")
    eventually(lambda: label() == "WARN", "the node's warning", 60)
    eventually(lambda: alerts(stack, "AutopilotCheckFailed") != [], "the alert, pending or firing", 120)
    (alert,) = alerts(stack, "AutopilotCheckFailed")
    assert (alert["labels"]["node"], alert["labels"]["health"], alert["labels"]["deviceid"]) == (
        node,
        "power-slowdown",
        "2",
    )
    eventually(lambda: series(stack, 'kube_node_labels{label_autopilot_ibm_com_gpuhealth="WARN"}') != [], "told", 90)
    stack.world.simulator("heal")
    eventually(lambda: label() == "PASS", "the node's warning is over", 60)


def test_a_link_that_is_down_is_seen(stack: Stack) -> None:
    node = node_of_jobs(stack)
    stack.world.simulator("fault", "hca", "--node", node, "--device", "mlx5_3")
    eventually(lambda: len(alerts(stack, "InfiniBandLinkDown")) == 1, "the alert, pending or firing", 120)
    stack.world.simulator("heal")
    (alert,) = alerts(stack, "InfiniBandLinkDown") or [{"labels": {"device": "mlx5_3"}}]
    assert alert["labels"]["device"] == "mlx5_3"


def shown(stack: Stack, panel: Panel, begun: float) -> list[dict[str, str]]:
    """Labels of what a panel has drawn since the story began."""
    span = {"start": f"{begun:.0f}", "end": f"{time.time():.0f}", "step": str(STEP_S)}
    found = asked(stack, "query_range", query=panel.query, **span)["result"]
    return [each["metric"] for each in found if any(float(value) == float(value) for _, value in each["values"])]


@pytest.mark.parametrize(("name", "title"), [(n, p.title) for n, d in dashboards().items() for p in d.panels])
def test_each_panel_of_each_dashboard_shows_what_happened(stack: Stack, begun: float, name: str, title: str) -> None:
    (panel,) = (panel for panel in dashboards()[name].panels if panel.title == title)
    eventually(lambda: shown(stack, panel, begun) != [], "it has data", 60)
    named = set(re.findall(r"{{(\w+)}}", panel.legend))
    assert all(named <= set(labels) or not labels for labels in shown(stack, panel, begun))


@pytest.mark.parametrize("name", dashboards())
def test_each_dashboard_is_drawn(stack: Stack, begun: float, name: str) -> None:
    """For the docs, where PICTURES names their folder: `PICTURES=docs/dashboards`."""
    charts = [chart(stack, panel, begun) for panel in dashboards()[name].panels]
    folder = Path(os.environ.get("PICTURES", stack.folder))
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text(svg(charts, columns=2), encoding="utf-8")
    assert all(any(value is not None for values in each.series.values() for value in values) for each in charts)


def chart(stack: Stack, panel: Panel, begun: float) -> Chart:
    """What a panel shows, its series called as its legend has them."""
    first, last = int(begun), int(time.time())
    span = {"start": f"{first}", "end": f"{last}", "step": str(STEP_S)}
    series = {}
    for each in asked(stack, "query_range", query=panel.query, **span)["result"]:
        name = _legend(panel, each["metric"])
        values = {int(float(at)): float(value) for at, value in each["values"]}
        series[name] = [_number(values.get(at)) for at in range(first, last + 1, STEP_S)]
    return Chart(panel.title, series, STEP_S, stacked=panel.stacked)


def _legend(panel: Panel, labels: dict[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), panel.legend)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def test_all_rules_are_loaded(stack: Stack) -> None:
    loaded = {rule["name"] for group in asked(stack, "rules")["groups"] for rule in group["rules"]}
    assert loaded >= {rule["alert"] for group in rules()["groups"] for rule in group["rules"]}
    health = {rule["health"] for group in asked(stack, "rules")["groups"] for rule in group["rules"]}
    assert health <= {"ok", "unknown"}


def test_a_rule_that_prometheus_could_not_read_is_refused(stack: Stack) -> None:
    rule = {"alert": "Wrong", "expr": "sum by ("}
    body = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "wrong", "namespace": "default"},
        "spec": {"groups": [{"name": "wrong", "rules": [rule]}]},
    }
    file = stack.folder / "wrong.json"
    file.write_text(json.dumps(body))
    with pytest.raises(CommandFailed, match="is invalid"):
        stack.world.run(
            ["env", f"KUBECONFIG={stack.world.kubeconfig(stack.name)}", "kubectl", "apply", "-f", str(file)]
        )


def test_the_outputs_lead_to_what_is_there(stack: Stack) -> None:
    assert stack.outputs()["monitoring"] == commands()
    for name in ("prometheus-grafana", SERVICE, "prometheus-kube-prometheus-alertmanager"):
        stack.kube.get("v1", "Service", name, NAMESPACE)
    password = partial(stack.kube.get, "v1", "Secret", "prometheus-grafana", NAMESPACE)
    assert len(password()["data"]["admin-password"]) > 20
