"""Cordoned nodes: who has cordoned them, and what they wait for."""

from __future__ import annotations

from typing import Any

import pytest

from diagnosis.cluster import EVENT, Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.support.case_files import case_table
from tests.unit.diagnosis import objects as make

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-22T10:42:00Z"}
"""As the node lifecycle controller adds it to a node whose spec is unschedulable."""


def cordoned(name: str = "a", *, by: str = "", **labels: str) -> tuple[Kind, Object]:
    kind, node = make.node(name, gpu=8, nics=8, taints=(make.SKU_TAINT, CORDON))
    node["spec"]["unschedulable"] = True
    node["metadata"]["labels"] |= {f"nvidia.com/{key}-driver-upgrade-state": value for key, value in labels.items()}
    others = {"manager": "kubelet", "fieldsV1": {"f:status": {}}}
    writer = {"manager": by, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    node["metadata"]["managedFields"] = [others, writer] if by else [others]
    return kind, node


def told(*objects: tuple[Kind, Object]) -> list[str]:
    return make.told(platform(make.cluster(*objects)))


def of_daemon_set(pod: tuple[Kind, Object]) -> tuple[Kind, Object]:
    pod[1]["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "ds", "uid": "ds"}]
    return pod


@pytest.mark.parametrize("by", ["kubectl", ""])
@pytest.mark.parametrize(
    ("source", "reason", "message"),
    [
        ("upgrader", "Drain", "Draining node: a"),
        ("aks-auto-repair", "NodeRebootStart", "Node auto-repair is initiating a reboot action due to NotReady status"),
        ("custom-scheduledevents-consolidated-condition", "PreemptScheduled", "Preempt Scheduled: now"),
    ],
)
def test_a_node_that_aks_is_changing_is_not_uncordoned(by: str, source: str, reason: str, message: str) -> None:
    what, do = told(cordoned(by=by), of_aks(source, reason, message))
    assert f"; AKS: {reason}: {message}" in what
    assert do == "do: kubectl describe node a    # do not uncordon it: wait until AKS is done with it"


@pytest.mark.parametrize(("message", "over"), [("Successfully updated", True), ("Update of node a failed", False)])
def test_an_upgrade_is_over_if_it_succeeded(message: str, over: bool) -> None:
    told_by_aks = [of_aks("upgrader", "Drain", "Draining node: a", 1), of_aks("upgrader", "Update", message, 2)]
    assert ("kubectl uncordon a" in told(cordoned(), *told_by_aks)[1]) == over


def of_aks(source: str, reason: str, message: str, minute: int = 0) -> tuple[Kind, Object]:
    at = f"2026-11-22T10:{minute:02}:00Z"
    about = (EVENT, {"metadata": {"namespace": "default", "uid": "a"}})
    kind, event = make.event(about, reason, message, at)
    return kind, {**event, "involvedObject": {"kind": "Node", "name": "a", "uid": "a"}, "source": {"component": source}}


@case_table(__file__, "upgrades")
def test_an_upgrade_names_the_driver_its_state_and_the_pods_that_it_waits_for(state: str, waits: str) -> None:
    driver = of_daemon_set(make.driver_pod("mofed", "a"))
    driver[1]["metadata"]["labels"] |= make.OFED_LABELS
    ended = make.pod("done", on="a", phase="Succeeded")
    here = [make.pod("notebook", on="a", ready=True), make.worker("train-0", on="a"), driver, ended]
    what, do = told(cordoned(by="manager", ofed=state), *here, make.pod("elsewhere", on="b", ready=True))
    changed = f"cordoned by NVIDIA's operators, who change DOCA OFED ({state}){waits}"
    assert what == f"waits: {changed} on node a since 10:42 UTC"
    assert do == "do: kubectl get pods -A -o wide --field-selector spec.nodeName=a"


@pytest.mark.parametrize("state", ["upgrade-done", "upgrade-required"])
def test_a_node_whose_driver_nobody_changes_now_is_somebody_elses_cordon(state: str) -> None:
    assert "cordoned by kubectl" in told(cordoned(by="kubectl", ofed=state))[0]


def both(*nodes: tuple[Kind, Object]) -> list[list[str]]:
    """What the platform reports, and a workload that would fit on the nodes."""
    waiting = make.cluster(make.volcano_job(), make.worker("train-0"), *nodes)
    return [told(*nodes), make.told(report(waiting, "ai", "train"))]


@case_table(__file__, "problems")
def test_a_node_with_problems_of_its_own_is_not_to_be_uncordoned(marks: Any, why: str) -> None:
    kind, node = cordoned(by="kubectl")
    for part, fields in marks.items():
        for key, value in fields.items():
            there = node[part].get(key, type(value)())
            node[part][key] = [*there, *value] if isinstance(value, list) else there | value
    for texts in both((kind, node)):
        assert [text for text in texts if why in text]
        (fix,) = [text for text in texts if "uncordon" in text]
        assert fix == "do: kubectl describe node a    # uncordon it only once its own problems are fixed"


def test_a_healthy_node_is_to_be_uncordoned_without_a_broken_one_beside_it() -> None:
    nodes = [cordoned(name, by="kubectl") for name in "ab"]
    nodes[1][1]["status"]["capacity"] = {"nvidia.com/gpu": "9"}
    for order in (nodes, nodes[::-1]):
        fixes = [text for text in told(*order) if "uncordon" in text]
        assert "do: kubectl uncordon a    # once it is known why" in fixes
        assert "do: kubectl describe node b    # uncordon it only once its own problems are fixed" in fixes


@pytest.mark.parametrize("key", ["spot.io/terminating", "kubernetes.azure.com/upgrade", "anything"])
def test_a_cordon_with_a_taint_that_all_nodes_of_the_pool_have_is_not_to_be_lifted(key: str) -> None:
    nodes = [cordoned(name, by="kubectl") for name in "ab"]
    for _, node in nodes:
        node["spec"]["taints"].append({"key": key, "effect": "NoSchedule"})
    for why, do in both(*nodes):
        assert why.startswith(f"waits: cordoned by kubectl: it takes no new pods, and has taint {key}:NoSchedule on")
        assert do.startswith("do: kubectl describe node a    # do not uncordon it: ")


def with_writers(*managers: str) -> tuple[Kind, Object]:
    kind, node = cordoned()
    field: Object = {"f:spec": {"f:unschedulable": {}}}
    node["metadata"]["managedFields"] = [{"manager": manager, "fieldsV1": field} for manager in managers]
    return kind, node


@pytest.mark.parametrize("controller", ["kured", "cluster-autoscaler", "aks-remediator"])
def test_a_controller_that_has_cordoned_the_node_counts_before_a_person(controller: str) -> None:
    for managers in (("kubectl-cordon", controller), (controller, "kubectl-cordon"), ("k9s", controller)):
        for why, do in both(with_writers(*managers)):
            assert why.startswith(f"waits: cordoned by {controller}: ")
            assert do == f"do: kubectl describe node a    # wait for {controller}"


@pytest.mark.parametrize("tool", ["k9s", "Lens", "node-fetch", "Mozilla", "python-requests"])
def test_a_cordon_with_another_tool_of_people_is_asked_about(tool: str) -> None:
    for why, do in both(cordoned(by=tool)):
        assert why.startswith(f"waits: cordoned by {tool}: ")
        assert do == f"do: kubectl uncordon a    # once it is known why: ask who uses {tool}"


def signed(kind: str, name: str, value: str) -> tuple[Kind, Object]:
    of, node = cordoned(by="kubectl")
    if kind == "conditions":
        node["status"]["conditions"] = [{"type": name, "status": value, "message": "why"}]
    else:
        node["metadata"][kind] = node["metadata"].get(kind, {}) | {name: value}
    return of, node


@case_table(__file__, "signs")
def test_each_sign_of_a_fault_is_named_and_its_node_is_not_to_be_uncordoned(
    kind: str, name: str, value: str, told_of: str
) -> None:
    for texts in both(signed(kind, name, value)):
        assert len([text for text in texts if told_of in text]) == 1
        (fix,) = [text for text in texts if "uncordon" in text]
        assert fix == "do: kubectl describe node a    # uncordon it only once its own problems are fixed"


@case_table(__file__, "in_order")
def test_what_is_in_order_does_not_keep_a_node_cordoned(kind: str, name: str, value: str) -> None:
    for texts in both(signed(kind, name, value)):
        assert [text for text in texts if "cordon" in text][1:] == ["do: kubectl uncordon a    # once it is known why"]
        assert len(texts) == 2


def test_a_person_s_cordon_is_named_beside_a_state_that_ends_by_itself() -> None:
    autoscaler = cordoned(by="kubectl-cordon")
    candidate = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    autoscaler[1]["spec"]["taints"].append(candidate)
    freeze = with_writers("cluster-autoscaler", "kubectl-cordon")
    freeze[1]["status"]["conditions"] = [{"type": "FreezeScheduled", "status": "True"}]
    for node, mark in ((autoscaler, candidate["key"]), (freeze, "FreezeScheduled")):
        for why, do in both(node):
            assert mark in why
            assert "cordoned by kubectl-cordon" in why
            assert do.endswith("; the cordon stays: ask who has set it")
