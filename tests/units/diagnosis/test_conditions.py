"""Problems of nodes that node-problem-detector tells, as somebody reads them who asks why a job fares badly."""

from __future__ import annotations

from diagnosis.cluster import Kind, Object
from diagnosis.report import platform, report
from tests.units.diagnosis import objects as make

HOT = {"type": "ai-on-aks/GPUTooHot", "status": "True", "reason": "GPUTooHot", "message": "GPUs that are too hot: 5"}
UNKNOWN = {"type": "ai-on-aks/GPUMissing", "status": "Unknown", "message": "there is no GPU driver on the node"}
WELL = {"type": "ai-on-aks/NVLinkInactive", "status": "False", "message": "all NVLinks are active"}
OF_AKS = {"type": "KernelDeadlock", "status": "True", "message": "of AKS's own"}


def sick(name: str, *conditions: Object) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8)
    node["status"]["conditions"] = list(conditions)
    return kind, node


def test_the_platform_names_nodes_with_a_problem_and_none_of_which_nobody_knows() -> None:
    nodes = (sick("a", HOT, WELL, OF_AKS), sick("b", UNKNOWN), sick("c", WELL), sick("d", HOT))
    assert platform(make.cluster(*nodes)).lines() == [
        "platform: NotReady",
        "  waits: GPUTooHot (GPUs that are too hot: 5) on nodes a and d",
        "    do: kubectl describe nodes a d",
    ]


def test_a_workload_tells_of_nodes_that_it_has_pods_on_and_of_no_others() -> None:
    pods = (make.worker("olmo-0", "olmo", on="a"), make.worker("olmo-1", "olmo", on="b"))
    found = report(make.cluster(make.job("olmo"), *pods, sick("a", HOT), sick("b", WELL), sick("c", HOT)), "ai", "olmo")
    assert found.remarks == ("its node a has GPUTooHot (GPUs that are too hot: 5)",)
