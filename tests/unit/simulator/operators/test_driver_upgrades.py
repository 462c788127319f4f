from __future__ import annotations

from typing import Any, get_args

import pytest
import yaml

from config.schema.operators import DriverUpgrades
from k8s.objects import Object
from operators import gpu_operator
from operators._lib.drivers import upgrade_policy
from simulator.host.paths import ROOT
from simulator.operators.gpu_operator.controller import GPU_DRIVER
from simulator.operators.network_operator.controller import OFED
from simulator.operators.upgrade import TEMPLATE_GENERATION, Driver, Upgrader
from tests.support.fake_kube import FakeKube, node, pod
from tests.support.sizes import H100

CHART = ROOT / "simulator" / "charts" / "gpu-operator" / "values.yaml"
CHARTS_DEFAULT = yaml.safe_load(CHART.read_text())["driver"]["upgradePolicy"]
BOTH = pytest.mark.parametrize("driver", [OFED, GPU_DRIVER], ids=lambda driver: driver.name)


class Rollout:
    def __init__(self, driver: Driver, policy: Object) -> None:
        self.driver, self.policy = driver, policy
        self.kube = FakeKube(node("a", H100), node("b", H100))
        for name in ("a", "b"):
            self.driver_pod(name, version=1)
            validator = pod(
                f"validator-{name}", {"app": "nvidia-operator-validator", "pod-template-generation": "1"}, name
            )
            validator["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "uid-validator"}]
            self.kube.create(validator)
        self.log: list[str] = []

    def driver_pod(self, on: str, *, version: int) -> None:
        made = pod(f"driver-{on}-{version}", {"app": "driver", "pod-template-generation": str(version)}, on)
        made["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "uid-driver"}]
        made["spec"]["containers"] = [{"name": "driver", "image": f"driver:{version}"}]
        self.kube.create(made)

    def job(self, **metadata: Any) -> Object:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
        made = pod("job", {}, "a", volumes=[{"name": "shm", "emptyDir": {}}])
        made["spec"]["containers"] = [{"name": "c", "image": "i"} | limits]
        made["metadata"] |= {"ownerReferences": [{"kind": "Job", "uid": "u"}]} | metadata
        made["status"]["phase"] = "Running"
        return self.kube.create(made)

    def step(self, times: int = 12) -> None:
        """Runs the controller, and re-creates deleted driver pods like their DaemonSet."""
        template = {"spec": {"containers": [{"name": "driver", "image": "driver:2"}]}}
        metadata = {"name": "driver", "uid": "uid-driver", "annotations": {TEMPLATE_GENERATION: "2"}}
        upgrader = Upgrader(self.driver, self.kube.as_client(), self.log.append)
        for _ in range(times):
            pods = self.kube.list("v1", "Pod", labels="app=driver")
            for name in {"a", "b"} - {found["spec"]["nodeName"] for found in pods}:
                self.driver_pod(name, version=2)
            pods = self.kube.list("v1", "Pod", labels="app=driver")
            daemonset = {"metadata": metadata, "spec": {"template": template}}
            upgrader.step(self.policy, [daemonset], pods, self.kube.list("v1", "Node"))

    def node(self, name: str) -> tuple[str, bool]:
        found = self.kube.objects[("Node", "", name)]
        state = found["metadata"]["labels"].get(f"{self.driver.prefix}-state", "")
        return state, bool(found["spec"].get("unschedulable"))

    @property
    def restarted(self) -> list[str]:
        return [line.removeprefix("delete Pod driver-")[0] for line in self.kube.writes if "delete Pod driver-" in line]

    @property
    def evicted(self) -> list[str]:
        return [line for line in self.kube.writes if "eviction" in line or line == "delete Pod job"]


def charts_default() -> Object:
    return {**CHARTS_DEFAULT, "podDeletion": CHARTS_DEFAULT["gpuPodDeletion"]}


def programs_policy(driver: Driver, upgrades: DriverUpgrades) -> Object:
    own = gpu_operator.values(upgrades, rdma=True, pools={})["driver"]["upgradePolicy"]
    return charts_default() | own if driver is GPU_DRIVER else upgrade_policy(upgrades)


def test_the_charts_default_leaves_the_node_of_a_job_with_an_emptydir_cordoned() -> None:
    """Source: pod_manager.go, SchedulePodEviction and updateNodeToDrainOrFailed."""
    rollout = Rollout(GPU_DRIVER, charts_default())
    rollout.job()
    rollout.step()
    assert rollout.node("a") == ("upgrade-failed", True)
    assert rollout.node("b") == ("upgrade-required", False)  # one node at a time
    assert rollout.restarted == []
    assert any("job uses an emptyDir and deleteEmptyDir is false" in line for line in rollout.log)
    rollout.kube.delete("v1", "Pod", "driver-a-1", "nvidia-operator")  # by hand, as upstream requires
    rollout.step()
    assert rollout.node("a") == ("upgrade-done", False)


@BOTH
def test_manual_changes_no_node(driver: Driver) -> None:
    rollout = Rollout(driver, programs_policy(driver, "manual"))
    rollout.job()
    rollout.step()
    assert rollout.node("a") == rollout.node("b") == ("", False)
    assert rollout.restarted == rollout.evicted == []


@BOTH
def test_when_idle_waits_for_pods_then_upgrades_node_by_node(driver: Driver) -> None:
    rollout = Rollout(driver, programs_policy(driver, "when-idle"))
    rollout.job()
    rollout.step()
    assert rollout.node("a") == ("wait-for-jobs-required", True)
    assert rollout.node("b") == ("upgrade-required", False)
    assert rollout.restarted == []
    rollout.kube.patch("v1", "Pod", "job", "nvidia-operator", {"status": {"phase": "Succeeded"}})
    rollout.step(24)
    assert rollout.node("a") == rollout.node("b") == ("upgrade-done", False)
    assert rollout.restarted == ["a", "b"]
    assert rollout.evicted == []


@BOTH
@pytest.mark.parametrize(
    "metadata",
    [{"ownerReferences": []}, {"labels": {"controller-revision-hash": "x", "apps.kubernetes.io/pod-index": "0"}}],
    ids=["bare pod", "pod of a StatefulSet"],
)
def test_when_idle_waits_for_pods_without_a_job(driver: Driver, metadata: Object) -> None:
    rollout = Rollout(driver, programs_policy(driver, "when-idle"))
    rollout.job(**metadata)
    rollout.step()
    assert rollout.node("a") == ("wait-for-jobs-required", True)
    assert rollout.evicted == []


def test_restarts_an_equal_driver_without_an_idle_node() -> None:
    """Source: gpu-operator v26.7.0, internal/predicates/restart_only.go."""
    rollout = Rollout(GPU_DRIVER, programs_policy(GPU_DRIVER, "when-idle"))
    rollout.job()
    for name in ("a", "b"):
        rollout.kube.objects[("Pod", "nvidia-operator", f"driver-{name}-1")]["spec"]["containers"][0]["image"] = (
            "driver:2"
        )
    rollout.step(24)
    assert rollout.restarted == ["a", "b"]
    assert rollout.node("a") == ("upgrade-done", False)
    assert rollout.evicted == []


@BOTH
def test_a_node_cordoned_before_stays_cordoned(driver: Driver) -> None:
    rollout = Rollout(driver, programs_policy(driver, "when-idle"))
    rollout.kube.patch("v1", "Node", "a", None, {"spec": {"unschedulable": True}})
    rollout.step(24)
    assert rollout.node("a") == ("upgrade-done", True)
    assert rollout.node("b") == ("upgrade-done", False)


@BOTH
def test_does_not_cordon_a_node_again_that_another_controller_uncordoned(driver: Driver) -> None:
    rollout = Rollout(driver, programs_policy(driver, "when-idle"))
    rollout.kube.patch("v1", "Node", "a", None, {"spec": {"unschedulable": True}})
    rollout.step(4)
    rollout.kube.patch("v1", "Node", "a", None, {"spec": {"unschedulable": None}})
    rollout.step(24)
    assert rollout.node("a") == ("upgrade-done", False)


@BOTH
def test_deletes_its_states_when_upgrades_are_disabled(driver: Driver) -> None:
    rollout = Rollout(driver, programs_policy(driver, "when-idle"))
    rollout.step(1)
    assert rollout.node("a") == ("upgrade-required", False)
    rollout.policy = programs_policy(driver, get_args(DriverUpgrades)[0])
    rollout.step(1)
    assert rollout.node("a") == ("", False)


def test_a_drain_evicts_pods_without_the_skip_label() -> None:
    rollout = Rollout(OFED, upgrade_policy("when-idle") | {"drain": {"enable": True, "deleteEmptyDir": True}})
    rollout.policy.pop("waitForCompletion")
    rollout.job()
    rollout.step(6)
    assert rollout.node("a") == ("drain-required", True)
    assert rollout.evicted
    rollout.kube.patch(
        "v1", "Pod", "job", "nvidia-operator", {"metadata": {"labels": {f"{OFED.prefix}-drain.skip": "true"}}}
    )
    rollout.step()
    assert "a" in rollout.restarted
