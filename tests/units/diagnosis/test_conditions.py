"""Problems of nodes that node-problem-detector tells, as somebody reads them who asks why a job fares badly."""

from __future__ import annotations

import pytest

from diagnosis.cluster import Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

AT = "2026-11-22T10:30:00Z"
HOT = {"type": "ai-on-aks/GPUTooHot", "status": "True", "reason": "GPUTooHot", "message": "GPUs that are too hot: 5"}
UNKNOWN = {"type": "ai-on-aks/GPUMissing", "status": "Unknown", "message": "there is no GPU driver on the node"}
WELL = {"type": "ai-on-aks/NVLinkInactive", "status": "False", "message": "all NVLinks are active"}
OF_OTHERS = {"type": "EtcdIsVoter", "status": "True", "message": "Node is a voting member of the etcd cluster"}


def sick(name: str, *conditions: Object) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8)
    node["status"]["conditions"] = list(conditions)
    return kind, node


def test_the_platform_names_nodes_with_a_problem_and_none_of_which_nobody_knows() -> None:
    nodes = (sick("a", HOT, WELL, OF_OTHERS), sick("b", UNKNOWN), sick("c", WELL), sick("d", HOT))
    assert platform(make.cluster(*nodes)).lines() == [
        "platform: NotReady",
        "  waits: GPUTooHot (GPUs that are too hot: 5) on nodes a and d",
        "    do: kubectl describe nodes a d",
    ]


def test_a_workload_tells_of_nodes_that_it_has_pods_on_and_of_no_others() -> None:
    pods = (make.worker("olmo-0", "olmo", on="a"), make.worker("olmo-1", "olmo", on="b"))
    found = report(make.cluster(make.job("olmo"), *pods, sick("a", HOT), sick("b", WELL), sick("c", HOT)), "ai", "olmo")
    assert found.remarks == ("its node a has GPUTooHot (GPUs that are too hot: 5)",)


@pytest.mark.parametrize("kind", ["GPUMissing", "XIDErrors", "NVLinkStatusInactive", "IBLinkFlapping",
    "GPUClockThrottling", "UnhealthyNvidiaDevicePlugin", "KernelDeadlock", "ReadonlyFilesystem",
    "FrequentKubeletRestart", "ContainerRuntimeProblem", "XfsShutdown", "CperHardwareErrorFatal", "GpuMemWatch",
    "SysLogsXIDError", "DiskPressure", "MemoryPressure"])  # fmt: skip
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_conditions_of_aks_are_reported_when_they_are_true(kind: str, status: str) -> None:
    found = make.told(platform(make.cluster(sick("a", {"type": kind, "status": status, "message": "why"}))))
    assert found == ([f"waits: {kind} (why) on node a", "do: kubectl describe nodes a"] if status == "True" else [])


@pytest.mark.parametrize(("theirs", "ours"), [("GPUMissing", "GPUMissing"), ("XIDErrors", "GPUXidCritical")])
def test_a_problem_that_both_detectors_see_is_reported_once(theirs: str, ours: str) -> None:
    both = [{"type": kind, "status": "True", "message": kind} for kind in (theirs, f"ai-on-aks/{ours}")]
    assert [f.why for f in platform(make.cluster(sick("a", *both))).findings] == [
        f"{ours} (ai-on-aks/{ours}) on node a"
    ]


def test_an_event_that_azure_has_scheduled_says_what_becomes_of_the_machine() -> None:
    event = {"type": "RebootScheduled", "status": "True", "message": "at 10:42", "lastTransitionTime": AT}
    (finding,) = platform(make.cluster(sick("a", event))).findings
    assert finding.why == "Azure reboots its machine (condition RebootScheduled: at 10:42) on node a since 10:30 UTC"
    assert "uncordon" not in finding.fix


@pytest.mark.parametrize("label", ["ai-on-aks/gpu-health=failed", "autopilot.ibm.com/gpuhealth=EVICT"])
def test_the_platform_names_nodes_whose_label_has_jobs_taken_away(label: str) -> None:
    kind, node = sick("a")
    key, _, value = label.partition("=")
    node["metadata"]["labels"][key] = value
    (finding,) = platform(make.cluster((kind, node))).findings
    assert finding.why == f"label {label}: AppWrapper takes its jobs away on node a"
    node["metadata"]["labels"][key] = "ok"
    assert platform(make.cluster((kind, node))).phase == "Ready"
