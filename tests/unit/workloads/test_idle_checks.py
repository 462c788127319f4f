from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest

from tests.support.docker_modules import imported
from tests.support.pools import RDMA, place
from workloads.health_check import idle
from workloads.health_check.manifests import Run
from workloads.health_check.options import NAME, HealthCheckOptions

Object = dict[str, Any]
BEGIN = datetime(2026, 11, 26, tzinfo=UTC)
EVERY = timedelta(minutes=idle.MINUTES)
ROUNDS = timedelta(days=1) // EVERY
GPU = "nvidia.com/gpu"
DEVICES = {"gpu": {GPU: "8", RDMA: "8"}}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return imported("node-health", "idle_checks")


def node(
    name: str, checked: datetime | None = None, *, ready: bool = True, gpus: int = 8, hcas: int = 8, **spec: Any
) -> Object:
    annotations = {"aznhc-checked": f"{checked:%Y-%m-%dT%H:%M:%SZ}"} if checked else {}
    status = {"conditions": [{"type": "Ready", "status": str(ready)}], "allocatable": {GPU: str(gpus), RDMA: str(hcas)}}
    labels = {"kubernetes.azure.com/agentpool": "gpu"}
    return {"metadata": {"name": name, "annotations": annotations, "labels": labels}, "spec": spec, "status": status}


def pod(on: str = "", gpus: int = 8, phase: str = "Running") -> Object:
    limits = {GPU: str(gpus)} if gpus else {}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}], **({"nodeName": on} if on else {})}
    return {"metadata": {"name": "pod"}, "spec": spec, "status": {"phase": phase}}


def test_a_node_is_idle_if_no_pod_uses_its_gpus(script: ModuleType) -> None:
    nodes = [node("a"), node("b")]
    others = [pod("a"), pod("b", gpus=0), pod("b", phase="Succeeded")]
    assert script.chosen(nodes, others, BEGIN, EVERY, DEVICES) == ["b"]


def test_ignores_pods_with_a_limit_of_zero_gpus(script: ModuleType) -> None:
    """Autopilot's DaemonSet has `nvidia.com/gpu: 0` on each GPU node."""
    autopilot, waiting = pod("a"), pod(phase="Pending")
    for each in (autopilot, waiting):
        each["spec"]["containers"][0]["resources"]["limits"] = {GPU: "0"}
    assert script.chosen([node("a")], [autopilot, waiting], BEGIN, EVERY, DEVICES) == ["a"]


def test_starts_no_check_while_pods_wait_for_gpus(script: ModuleType) -> None:
    assert script.chosen([node("a")], [pod(phase="Pending")], BEGIN, EVERY, DEVICES) == []


def test_a_waiting_check_does_not_block_checks_of_other_nodes(script: ModuleType) -> None:
    waits = pod(phase="Pending")
    waits["metadata"]["name"] = "idle-check-a"
    waits["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    assert script.chosen([node("a"), node("b")], [waits], BEGIN, EVERY, DEVICES) == ["b"]


@pytest.mark.parametrize(
    "found",
    [
        node("a", BEGIN - timedelta(hours=23)),
        node("a", ready=False),
        node("a", gpus=0),
        node("a", hcas=0),
        node("a", unschedulable=True),
    ],
)
def test_skips_nodes_that_are_not_due_or_cannot_be_checked(script: ModuleType, found: Object) -> None:
    assert script.chosen([found], [], BEGIN, EVERY, DEVICES) == []


def test_checks_a_node_with_fewer_devices_with_those_that_it_offers(script: ModuleType) -> None:
    broken = node("a", gpus=7, hcas=6)
    assert script.chosen([broken], [], BEGIN, EVERY, DEVICES) == ["a"]
    template = json.loads(json.dumps(idle.pod_template(run(), "idle")))
    resources = script.check(template, broken, {"kind": "Job"})["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"] == {GPU: "7", RDMA: "6"}


def test_checks_failed_nodes_again(script: ModuleType) -> None:
    tainted = node("a", taints=[{"key": "aznhc", "value": "failed", "effect": "NoExecute"}])
    assert script.chosen([tainted], [], BEGIN, EVERY, DEVICES) == ["a"]


@pytest.mark.parametrize("count", [1, 8, 300])
def test_checks_each_node_once_a_day_and_distributes_checks_evenly(script: ModuleType, count: int) -> None:
    nodes = [node(f"n{index}") for index in range(count)]
    begun: Counter[str] = Counter()
    for number in range(ROUNDS):
        now = BEGIN + number * EVERY
        names = script.chosen(nodes, [], now, EVERY, DEVICES)
        assert len(names) <= -(-count // ROUNDS)
        for name in names:
            begun[name] += 1
            nodes[int(name[1:])] = node(name, now)
    assert set(begun.values()) == {1}
    assert len(begun) == count


def test_checks_never_disturb_jobs_over_a_day(script: ModuleType) -> None:
    """Jobs of full nodes start and end at random, and preempt checks at once, like with the scheduler."""
    chance = random.Random(20)  # noqa: S311 - not for secrets
    nodes = {name: node(name) for name in (f"n{index}" for index in range(16))}
    jobs: dict[str, datetime] = {}
    checks: dict[str, datetime] = {}
    waiting, begun = 0, 0
    for minute in range(24 * 60):
        now = BEGIN + timedelta(minutes=minute)
        jobs = {name: end for name, end in jobs.items() if end > now}
        for name in [name for name, end in checks.items() if end <= now]:
            nodes[name] = node(name, checks.pop(name))
        waiting += chance.random() < 0.05
        for name in [name for name in nodes if name not in jobs][:waiting]:
            checks.pop(name, None)
            jobs[name] = now + timedelta(minutes=chance.randrange(30, 300))
            waiting -= 1
        if minute % idle.MINUTES == 0:
            pods = [*(pod(name) for name in (*jobs, *checks)), *(pod(phase="Pending") for _ in range(waiting))]
            names = script.chosen(list(nodes.values()), pods, now, EVERY, DEVICES)
            assert not names or not waiting
            assert not {*names} & {*jobs, *checks}
            checks |= dict.fromkeys(names, now + timedelta(minutes=5))
            begun += len(names)
    assert begun >= len(nodes)  # preempted checks are repeated


def waiting(policy: str, on: str = "", **more: Any) -> Object:
    found = pod(on, phase="Pending", **more)
    found["spec"]["preemptionPolicy"] = policy
    return found


@pytest.mark.parametrize(
    ("waits", "deleted"),
    [
        (waiting("Never"), True),  # the policy of a team's priority class
        (waiting("PreemptLowerPriority"), False),  # the scheduler evicts checks
        (waiting("Never", gpus=0), False),
        (waiting("Never", on="a"), False),
    ],
)
def test_deletes_checks_for_waiting_pods_that_cannot_preempt_them(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, waits: Object, deleted: bool
) -> None:
    checks = {name: pod("a", phase=phase) for name, phase in (("run", "Running"), ("done", "Succeeded"))}
    for name, each in checks.items():
        each["metadata"]["name"] = name
    asked = []

    def call(method: str, path: str) -> Object:
        asked.append(f"{method} {path}")
        if method == "DELETE":
            del checks[path.rpartition("/")[2]]
        return {"items": [waits] if "Pending" in path else [*checks.values()]}

    monkeypatch.setattr(script, "call", call)
    monkeypatch.setattr(script.time, "sleep", lambda _: None)
    monkeypatch.setenv("LABEL", "app.kubernetes.io/name=idle-health-check")
    script.give_way("/pods", script.time.monotonic() + (30 if deleted else 0.01))
    assert ("DELETE /pods/run" in asked) is deleted
    assert asked[0] == "GET /pods?labelSelector=app.kubernetes.io/name%3Didle-health-check"
    assert "done" in checks


def test_a_round_watches_its_own_checks_and_has_a_deadline() -> None:
    spec = idle.cron_job_spec(idle.name_of(run()), "node-health:1")
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] > idle.MINUTES * 60
    assert spec["concurrencyPolicy"] == "Forbid"
    labels = idle.pod_template(run(), "idle")["metadata"]["labels"]
    (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "LABEL", "value": "=".join(*labels.items())} in container["env"]


def run(**options: Any) -> Run:
    chosen = HealthCheckOptions(idle_checks=True, **options)
    return Run(name=NAME, options=chosen, taint_effect="NoSchedule", **place(nodes=2))


def test_any_job_preempts_a_check_and_no_node_is_created_for_one() -> None:
    spec = idle.pod_template(run(), "idle")["spec"]
    assert spec["priorityClassName"] == "idle"
    assert spec["terminationGracePeriodSeconds"] <= 5
    assert spec["restartPolicy"] == "Never"
    assert idle.priority_class()["value"] < -10
    assert idle.priority_class()["preemption_policy"] == "Never"


def test_a_check_runs_alone_on_its_node(script: ModuleType) -> None:
    template = json.loads(json.dumps(idle.pod_template(run(node_names=("aks-x-1",)), "idle")))
    made = script.check(template, node("aks-gpu-1-vmss000000"), {"kind": "Job"})
    assert "scheduling.k8s.io/group-name" not in made["metadata"].get("annotations", {})
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "aks-gpu-1-vmss000000"}
    assert "aks-x-1" not in json.dumps(made)
    assert made["metadata"]["ownerReferences"] == [{"kind": "Job"}]
