from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import EVENT, Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-22T10:42:00Z"}
"""The node lifecycle controller's taint of an unschedulable node."""


def cordoned(*managers: str, name: str = "a", **labels: str) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8, taints=(make.SKU_TAINT, CORDON))
    node["spec"]["unschedulable"] = True
    node["metadata"]["labels"] |= {f"nvidia.com/{key}-driver-upgrade-state": value for key, value in labels.items()}
    others = {"manager": "kubelet", "fieldsV1": {"f:status": {}}}
    field: Object = {"f:spec": {"f:unschedulable": {}}}
    writers = [{"manager": manager, "fieldsV1": field} for manager in managers]
    node["metadata"]["managedFields"] = [others, *writers]
    return kind, node


def shown(*objects: tuple[Kind, Object]) -> list[str]:
    return make.shown(platform(make.cluster(*objects)))


def of_daemon_set(pod: tuple[Kind, Object]) -> tuple[Kind, Object]:
    pod[1]["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "ds", "uid": "ds"}]
    return pod


@pytest.mark.parametrize("by", [["kubectl"], []])
@pytest.mark.parametrize(
    ("source", "reason", "message"),
    [
        ("upgrader", "Drain", "Draining node: a"),
        ("aks-auto-repair", "NodeRebootStart", "Node auto-repair is initiating a reboot action due to NotReady status"),
        ("custom-scheduledevents-consolidated-condition", "PreemptScheduled", "Preempt Scheduled: now"),
    ],
)
def test_does_not_uncordon_a_node_that_aks_changes(by: list[str], source: str, reason: str, message: str) -> None:
    what, do = shown(cordoned(*by), of_aks(source, reason, message))
    assert f"; AKS: {reason}: {message}" in what
    assert do == "do: kubectl describe node a    # do not uncordon it: wait until AKS has finished"


@pytest.mark.parametrize(("message", "over"), [("Successfully updated", True), ("Update of node a failed", False)])
def test_an_upgrade_is_over_if_it_succeeded(message: str, over: bool) -> None:
    events = [of_aks("upgrader", "Drain", "Draining node: a", 1), of_aks("upgrader", "Update", message, 2)]
    assert ("kubectl uncordon a" in shown(cordoned(), *events)[1]) == over


def of_aks(source: str, reason: str, message: str, minute: int = 0) -> tuple[Kind, Object]:
    at = f"2026-11-22T10:{minute:02}:00Z"
    about = (EVENT, {"metadata": {"namespace": "default", "uid": "a"}})
    kind, event = make.event(about, reason, message, at)
    return kind, {**event, "involvedObject": {"kind": "Node", "name": "a", "uid": "a"}, "source": {"component": source}}


@case_table(__file__, "upgrades")
def test_an_upgrade_shows_the_driver_its_state_and_the_pods_that_it_waits_for(state: str, waits: str) -> None:
    driver = of_daemon_set(make.driver_pod("mofed", "a"))
    driver[1]["metadata"]["labels"] |= make.OFED_LABELS
    ended = make.pod("done", on="a", phase="Succeeded")
    here = [make.pod("notebook", on="a", ready=True), make.worker("train-0", on="a"), driver, ended]
    what, do = shown(cordoned("manager", ofed=state), *here, make.pod("elsewhere", on="b", ready=True))
    changed = f"cordoned by NVIDIA's operators, which upgrade DOCA OFED ({state}){waits}"
    assert what == f"waits: {changed} on node a since 10:42 UTC"
    assert do == "do: kubectl get pods -A -o wide --field-selector spec.nodeName=a"


@pytest.mark.parametrize("state", ["upgrade-done", "upgrade-required"])
def test_a_cordon_without_a_running_upgrade_is_not_the_operators(state: str) -> None:
    assert "cordoned by kubectl" in shown(cordoned("kubectl", ofed=state))[0]


def both(*nodes: tuple[Kind, Object]) -> list[list[str]]:
    waiting = make.cluster(make.volcano_job(), make.worker("train-0"), *nodes)
    return [shown(*nodes), make.shown(report(waiting, "ai", "train"))]


OTHER_PROBLEMS = "do: kubectl describe node {}    # uncordon it only after its other problems are fixed"
UNCORDON = "do: kubectl uncordon a    # first find out why it is cordoned"


def marked(marks: Any) -> tuple[Kind, Object]:
    kind, node = cordoned("kubectl")
    for part, fields in marks.items():
        for key, value in fields.items():
            old = node[part].get(key, type(value)())
            node[part][key] = [*old, *value] if isinstance(value, list) else old | value
    return kind, node


@case_table(__file__, "problems")
def test_shows_each_problem_of_a_node_and_does_not_uncordon_it(marks: Any, why: str) -> None:
    for texts in both(marked(marks)):
        assert [text for text in texts if why in text]
        assert [text for text in texts if "uncordon" in text] == [OTHER_PROBLEMS.format("a")]


@case_table(__file__, "healthy")
def test_healthy_marks_do_not_keep_a_node_cordoned(marks: Any) -> None:
    for texts in both(marked(marks)):
        assert [text for text in texts if "cordon" in text][1:] == [UNCORDON]
        assert len(texts) == 2


def test_uncordons_only_the_healthy_one_of_two_nodes() -> None:
    nodes = [cordoned("kubectl", name=name) for name in "ab"]
    nodes[1][1]["status"]["capacity"] = {"nvidia.com/gpu": "9"}
    for order in (nodes, nodes[::-1]):
        fixes = [text for text in shown(*order) if "uncordon" in text]
        assert {UNCORDON, OTHER_PROBLEMS.format("b")} <= set(fixes)


@pytest.mark.parametrize("key", ["spot.io/terminating", "kubernetes.azure.com/upgrade", "anything"])
def test_does_not_uncordon_nodes_if_all_of_the_pool_have_another_taint(key: str) -> None:
    nodes = [cordoned("kubectl", name=name) for name in "ab"]
    for _, node in nodes:
        node["spec"]["taints"].append({"key": key, "effect": "NoSchedule"})
    for why, do in both(*nodes):
        assert why.startswith(f"waits: cordoned by kubectl: it takes no new pods, and has taint {key}:NoSchedule on")
        assert do.startswith("do: kubectl describe node a    # do not uncordon it, unless ")


@pytest.mark.parametrize("controller", ["kured", "cluster-autoscaler", "aks-remediator"])
def test_a_controllers_cordon_counts_before_a_users(controller: str) -> None:
    for managers in (("kubectl-cordon", controller), (controller, "kubectl-cordon"), ("k9s", controller)):
        for why, do in both(cordoned(*managers)):
            assert why.startswith(f"waits: cordoned by {controller}: ")
            assert do == f"do: kubectl describe node a    # wait for {controller}"


@pytest.mark.parametrize("tool", ["k9s", "Lens", "node-fetch", "Mozilla", "python-requests"])
def test_a_cordon_by_a_users_tool(tool: str) -> None:
    for why, do in both(cordoned(tool)):
        assert why.startswith(f"waits: cordoned by {tool}: ")
        assert do == f"{UNCORDON}: ask the user of {tool}"


def test_shows_a_users_cordon_beside_a_temporary_state() -> None:
    autoscaler = cordoned("kubectl-cordon")
    candidate = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    autoscaler[1]["spec"]["taints"].append(candidate)
    freeze = cordoned("cluster-autoscaler", "kubectl-cordon")
    freeze[1]["status"]["conditions"] = [{"type": "FreezeScheduled", "status": "True"}]
    for node, mark in ((autoscaler, candidate["key"]), (freeze, "FreezeScheduled")):
        for why, do in both(node):
            assert mark in why
            assert "cordoned by kubectl-cordon" in why
            assert do.endswith("; the cordon stays: ask the user who set it")
