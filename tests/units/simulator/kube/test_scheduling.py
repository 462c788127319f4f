"""Which nodes a pod may go to: the simulator and the program, each by rules of its own, agree with Kubernetes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.nodes import chosen, untolerated
from diagnosis.nodes import tolerates as program_tolerates
from diagnosis.shapes import shaped
from k8s.objects import Object
from simulator.kube.scheduling import repelling_taint, selects, tolerates
from tests.support import kube_scheduling

_KEYS, _VALUES = st.sampled_from("ab"), st.sampled_from(["", "1", "2", "10", "x"])
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def _of(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


_EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "key": _KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(_VALUES, min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": _KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries(
        {"key": _KEYS, "operator": st.sampled_from(["Gt", "Lt"]), "values": st.lists(_VALUES, min_size=1, max_size=1)}
    ),
)
_FIELD = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from([["n1"], ["n2"]]),
    }
)
_TERM = _of(matchExpressions=st.lists(_EXPRESSION, max_size=2), matchFields=st.lists(_FIELD, max_size=1))
_TOLERATION = st.one_of(
    _of(key=_KEYS, operator=st.just("Exists"), effect=st.sampled_from(["", *_EFFECTS])),
    st.fixed_dictionaries(
        {"key": _KEYS},
        optional={
            "operator": st.sampled_from(["", "Equal", "Lt", "Gt"]),
            "value": _VALUES,
            "effect": st.sampled_from(["", *_EFFECTS]),
        },
    ),
)
_TAINT = st.fixed_dictionaries({"key": _KEYS, "effect": st.sampled_from(_EFFECTS)}, optional={"value": _VALUES})


@given(
    case=_of(
        selector=st.dictionaries(_KEYS, _VALUES, max_size=1),
        terms=st.lists(_TERM, min_size=1, max_size=2),
        tolerations=st.lists(_TOLERATION, max_size=2),
        labels=st.dictionaries(_KEYS, _VALUES),
    ),
    taints=st.lists(_TAINT, max_size=2),
)
def test_the_program_and_the_simulator_choose_the_same_nodes(case: Object, taints: list[Object]) -> None:
    pod, node = kube_scheduling.pod(case), kube_scheduling.node(case)
    node["spec"]["taints"] = taints
    read_pod, read_node = shaped("Pod", pod), shaped("Node", node)
    assert selects(pod, node) == chosen(read_node, read_pod)
    assert repelling_taint(pod, node) == next(iter(untolerated(read_node, read_pod["spec"])), None)


@pytest.mark.parametrize("case", kube_scheduling.recorded("node_affinity"))
def test_node_affinity(case: Object) -> None:
    pod, node = kube_scheduling.pod(case), kube_scheduling.node(case)
    assert selects(pod, node) == case["matches"]
    assert chosen(shaped("Node", node), shaped("Pod", pod)) == case["matches"]


@pytest.mark.parametrize("case", kube_scheduling.recorded("tolerations"))
def test_tolerations(case: Object) -> None:
    (taint,) = kube_scheduling.node(case)["spec"]["taints"]
    assert tolerates(case["tolerations"], taint) == case["matches"]
    assert program_tolerates(case["tolerations"], taint) == case["matches"]


@pytest.mark.parametrize(
    ("toleration", "repelled"),
    [
        ({"operator": "Exists"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, True),
    ],
)
def test_a_cordoned_node_repels_pods_that_do_not_tolerate_it(toleration: Object, repelled: bool) -> None:
    """The scheduler's plugin NodeUnschedulable (Kubernetes 1.35.4, nodeunschedulable/node_unschedulable.go)."""
    node = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert bool(repelling_taint({"spec": {"tolerations": [toleration]}}, node)) is repelled
