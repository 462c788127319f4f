from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.data import data
from diagnosis.cluster import Kind
from diagnosis.finding import Finding
from diagnosis.report import platform
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

MINE = {"key": "quarantine", "value": "yes", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
JOINING = "not ready yet (it has just joined the cluster) on node a"


def why(*taints: Object, writer: str = "", **node: Any) -> list[Finding]:
    """`writer` is the taints' field manager."""
    kind, made = make.node("a", gpu=8, nics=8, taints=(make.SKU_TAINT, *taints))
    made["metadata"] |= {key: made["metadata"].get(key, {}) | value for key, value in node.items()}
    made["metadata"]["managedFields"] = [{"manager": writer, "fieldsV1": {"f:spec": {"f:taints": {}}}}]
    made["spec"]["unschedulable"] = CORDON in taints
    return list(make.diagnosed(make.volcano_job(), make.worker("train-0"), (kind, made)).findings)


@case_table(__file__, "taints")
@pytest.mark.parametrize("others", [(), (CORDON,), ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},)])
def test_a_controllers_taint_shows_it_and_no_toleration(key: str, who: str, others: tuple[Object, ...]) -> None:
    (finding,) = why(*others, {"key": key, "effect": "NoSchedule", "timeAdded": "2026-11-22T10:42:00Z"})
    assert who in finding.why
    assert finding.why.endswith("on node a since 10:42 UTC")
    assert finding.fix
    assert not [word for word in ("uncordon", "tolerat", "taint nodes") if word in finding.fix]


@case_table(__file__, "marks")
def test_labels_and_annotations_explain_a_cordon(marks: Any, who: str) -> None:
    (finding,) = why(CORDON, **marks)
    assert who in finding.why
    assert "kubectl uncordon" not in finding.fix


@pytest.mark.parametrize(
    ("key", "named"), [("remediator.aks.microsoft.com/unschedulable", 1), ("karpenter.sh/disrupted", 0)]
)
def test_the_platform_shows_removals_except_routine_ones_once(key: str, named: int) -> None:
    kind, node = make.node("a", gpu=8, nics=8, taints=({"key": key, "effect": "NoSchedule"},))
    assert len(platform(make.cluster((kind, node))).findings) == named
    node["spec"]["unschedulable"] = True
    assert len(platform(make.cluster((kind, node))).findings) == 1


@pytest.mark.parametrize(
    "key", ["cloud.google.com/impending-node-termination", "scheduled-redeploy", "x/rma", "NodeUnderReplacement"]
)
@pytest.mark.parametrize("writer", ["", "node-upgrade-controller"])
def test_an_unknown_taint_may_be_tolerated_only_if_its_pool_lists_it(key: str, writer: str) -> None:
    (found,) = why({"key": key, "effect": "NoSchedule"}, writer=writer)
    by = f", last written by {writer}" if writer else ""
    assert found.why == f"no toleration for taint {key}:NoSchedule{by} on node a"
    assert found.fix == (
        f"az aks nodepool show -g <group> --cluster-name <cluster> -n {make.POOL} --query nodeTaints    "
        "# if pools.<key>.taints of the stack does not list the taint, a controller is removing the node; if it "
        f"does, add {{key: {key}, operator: Exists, effect: NoSchedule}} to the pod's spec.tolerations; for a workload "
        "of the stack, list all tolerations in podOverrides.spec.tolerations"
    )


def test_a_taint_of_the_pool_differs_from_a_taint_of_one_node() -> None:
    (of_pool,) = why(MINE)
    assert "pools.<key>.taints" in of_pool.fix
    nodes = [make.node("a", gpu=8, nics=8, taints=(MINE,)), make.node("b", gpu=1, nics=8)]
    found = make.diagnosed(make.volcano_job(), make.worker("train-0"), *nodes).findings
    (of_node,) = [finding for finding in found if "quarantine" in finding.why]
    assert of_node.why.startswith("taint quarantine=yes:NoSchedule, which its pool does not set, on node")
    assert "toleration" not in of_node.fix


@pytest.mark.parametrize("key", ["maintenance", "decommission", "nvidia.com/gpu-xid-error", "anything"])
@pytest.mark.parametrize("cordons", [(), (CORDON,)])
def test_a_taint_of_one_node_is_not_tolerated(key: str, cordons: tuple[Object, ...]) -> None:
    writer = "kubectl-taint" if key == "anything" else ""
    (found,) = why(*cordons, {"key": key, "value": "true", "effect": "NoSchedule"}, writer=writer)
    cordon = " and a cordon" if cordons else ""
    assert found.why == f"taint {key}=true:NoSchedule, which its pool does not set,{cordon} on node a"
    who = writer or "the controller or user that set it"
    assert found.fix == f"kubectl describe node a    # ask {who}; neither tolerate the taint nor uncordon the node"


def test_reports_a_nodes_problem_before_a_taint_of_its_pool() -> None:
    pressure = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    for taints in ((MINE, pressure), (pressure, MINE)):
        (finding,) = why(*taints)
        assert finding.why == "not ready for pods: taint node.kubernetes.io/disk-pressure:NoSchedule on node a"
        assert "toleration" not in finding.fix


def created(seconds_ago: int, *taints: Object) -> tuple[Kind, Object]:
    kind, node = make.node("a", taints=(make.SKU_TAINT, *taints))
    node["metadata"]["creationTimestamp"] = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat()
    node["status"]["conditions"] = [{"type": "Ready", "status": "False", "message": "network plugin not ready"}]
    return kind, node


def test_a_node_that_has_just_joined_is_not_a_problem() -> None:
    new, old = created(30, NOT_READY), created(600, NOT_READY)
    for node, joining in ((new, True), (old, False)):
        first = make.diagnosed(make.volcano_job(), make.worker("train-0"), node).findings[0]
        (of_platform,) = platform(make.cluster(node)).findings
        assert (first.why == JOINING, first.passing) == (joining, joining)
        assert (of_platform.why == JOINING, of_platform.passing) == (joining, joining)
    assert of_platform.fix == "kubectl describe node a    # AKS tries to repair such a node (docs/lost-nodes.md)"


@pytest.mark.parametrize(
    ("seconds_ago", "verb"), [(30, "does not run yet"), (600, "does not run: NFD and the operators")]
)
def test_a_new_node_may_lack_the_operators_labels(seconds_ago: int, verb: str) -> None:
    kind, node = created(seconds_ago)
    del node["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"]
    objects = (make.volcano_job(), make.worker("train-0"), make.cluster_policy(), make.operators()[-1])
    first = make.diagnosed(*objects, (kind, node)).findings[0]
    assert f"the GPU device plugin {verb}" in first.why
    assert first.passing == (seconds_ago == 30)


def test_data_of_states_has_a_controller_and_an_action() -> None:
    known = data.read("node_states.yaml")
    groups = [known[kind][group] for kind in ("taints", "labels", "annotations") for group in known[kind]]
    for entry in [each for group in (*groups, known["conditions"]["leaving"]) for each in group.values()]:
        assert set(entry) <= {"who", "do", "routine", "stays"}
        assert entry["who"]
        assert not [word for word in ("kubectl uncordon", "kubectl taint", "tolerations") if word in entry["do"]]


@pytest.mark.parametrize("kind", ["GPUMissing", "XIDErrors", "NVLinkStatusInactive", "IBLinkFlapping",
    "GPUClockThrottling", "UnhealthyNvidiaDevicePlugin", "KernelDeadlock", "ReadonlyFilesystem",
    "FrequentKubeletRestart", "ContainerRuntimeProblem", "XfsShutdown", "CperHardwareErrorFatal", "GpuMemWatch",
    "SysLogsXIDError", "DiskPressure", "MemoryPressure"])  # fmt: skip
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_reports_aks_conditions_that_are_true(kind: str, status: str) -> None:
    of, node = make.node("a", gpu=8, nics=8)
    node["status"]["conditions"] = [{"type": kind, "status": status, "message": "why"}]
    found = make.shown(platform(make.cluster((of, node))))
    assert found == ([f"waits: {kind} (why) on node a", "do: kubectl describe nodes a"] if status == "True" else [])


@pytest.mark.parametrize("label", ["ai-on-aks/gpu-health=failed", "autopilot.ibm.com/gpuhealth=EVICT"])
def test_the_platform_shows_labels_that_make_appwrapper_move_jobs(label: str) -> None:
    kind, node = make.node("a", gpu=8, nics=8)
    key, _, value = label.partition("=")
    node["metadata"]["labels"][key] = value
    (finding,) = platform(make.cluster((kind, node))).findings
    assert finding.why == f"label {label}: AppWrapper moves its jobs away on node a"
    node["metadata"]["labels"][key] = "ok"
    assert platform(make.cluster((kind, node))).phase == "Ready"
