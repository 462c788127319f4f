"""Problems of nodes that node-problem-detector tells, as somebody reads them who asks why a job fares badly."""

from __future__ import annotations

import pytest

from diagnosis.cluster import Kind
from diagnosis.report import platform
from k8s.objects import Object
from tests.unit.diagnosis import objects as make


def sick(name: str, *conditions: Object) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8)
    node["status"]["conditions"] = list(conditions)
    return kind, node


@pytest.mark.parametrize("kind", ["GPUMissing", "XIDErrors", "NVLinkStatusInactive", "IBLinkFlapping",
    "GPUClockThrottling", "UnhealthyNvidiaDevicePlugin", "KernelDeadlock", "ReadonlyFilesystem",
    "FrequentKubeletRestart", "ContainerRuntimeProblem", "XfsShutdown", "CperHardwareErrorFatal", "GpuMemWatch",
    "SysLogsXIDError", "DiskPressure", "MemoryPressure"])  # fmt: skip
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_conditions_of_aks_are_reported_when_they_are_true(kind: str, status: str) -> None:
    found = make.told(platform(make.cluster(sick("a", {"type": kind, "status": status, "message": "why"}))))
    assert found == ([f"waits: {kind} (why) on node a", "do: kubectl describe nodes a"] if status == "True" else [])


@pytest.mark.parametrize("label", ["ai-on-aks/gpu-health=failed", "autopilot.ibm.com/gpuhealth=EVICT"])
def test_the_platform_names_nodes_whose_label_has_jobs_taken_away(label: str) -> None:
    kind, node = sick("a")
    key, _, value = label.partition("=")
    node["metadata"]["labels"][key] = value
    (finding,) = platform(make.cluster((kind, node))).findings
    assert finding.why == f"label {label}: AppWrapper takes its jobs away on node a"
    node["metadata"]["labels"][key] = "ok"
    assert platform(make.cluster((kind, node))).phase == "Ready"
