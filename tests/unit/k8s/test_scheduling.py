from __future__ import annotations

import pytest

from k8s.objects import Object
from k8s.scheduling import repelling_taint, selects, tolerates
from tests.support import kube_scheduling


@pytest.mark.parametrize("case", kube_scheduling.recorded("node_affinity"))
def test_node_affinity(case: Object) -> None:
    pod, node = kube_scheduling.pod(case), kube_scheduling.node(case)
    assert selects(pod, node) == case["matches"]


@pytest.mark.parametrize("case", kube_scheduling.recorded("tolerations"))
def test_tolerations(case: Object) -> None:
    (taint,) = kube_scheduling.node(case)["spec"]["taints"]
    assert tolerates(case["tolerations"], taint) == case["matches"]


@pytest.mark.parametrize(
    ("toleration", "repelled"),
    [
        ({"operator": "Exists"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, True),
    ],
)
def test_a_cordoned_node_repels_pods_without_the_toleration(toleration: Object, repelled: bool) -> None:
    """The scheduler's NodeUnschedulable (Kubernetes 1.35.4, nodeunschedulable/node_unschedulable.go)."""
    node = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert bool(repelling_taint({"spec": {"tolerations": [toleration]}}, node)) is repelled
