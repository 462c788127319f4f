"""Utilization of nodes, as the cluster autoscaler computes it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from k8s.objects import Object
from simulator.azure.autoscaler.scale_down import utilization


def pod(owner: str, cpu: str) -> Object:
    metadata = {"name": owner.lower(), "namespace": "ai", "ownerReferences": [{"kind": owner}]}
    spec = {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return {"metadata": metadata, "spec": spec, "status": {}}


@pytest.mark.parametrize(("skip", "used"), [(False, Fraction(6, 10)), (True, Fraction(4, 8))])
def test_skipped_daemon_sets_leave_a_smaller_node(skip: bool, used: Fraction) -> None:
    """cluster-autoscaler/simulator/utilization/info.go, CalculateUtilizationOfResource."""
    node = {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "10", "memory": "1Gi"}}}
    assert utilization(node, [pod("DaemonSet", "2"), pod("Job", "4")], skip_daemon_sets=skip) == used
