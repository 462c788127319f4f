from __future__ import annotations

import pytest

from k8s.objects import Object
from k8s.quantities import value
from k8s.resources import allocatable, device_requests, pod_requests
from tests.support import kube_scheduling


@pytest.mark.parametrize("case", kube_scheduling.recorded("pod_requests"))
def test_requests_of_a_pod(case: Object) -> None:
    expected = {name: value(amount) for name, amount in case["requests"].items()}
    assert pod_requests(kube_scheduling.pod(case)) == expected


@pytest.mark.parametrize(
    ("init", "containers", "devices"),
    [
        ([], [{"requests": {"nvidia.com/gpu": "1k"}}], {"nvidia.com/gpu": 1000}),
        ([], [{"requests": {"rdma/ib": 2}}, {"limits": {"rdma/ib": "1"}}], {"rdma/ib": 3}),
        ([{"limits": {"nvidia.com/gpu": "8"}}], [{"limits": {"nvidia.com/gpu": "1"}}], {"nvidia.com/gpu": 8}),
        ([], [{"limits": {"nvidia.com/gpu": "0", "cpu": "4", "memory": "1Gi", "hugepages-2Mi": "1Gi"}}], {}),
        ([], [{"limits": {"nvidia.com/gpu": "-1", "example.com/card": "many"}}], {}),
    ],
)
def test_devices_of_pods_and_templates(init: list[Object], containers: list[Object], devices: dict[str, int]) -> None:
    spec = {
        kind: [{"resources": each} for each in of]
        for kind, of in (("initContainers", init), ("containers", containers))
    }
    assert device_requests({"spec": spec}) == devices


def test_a_missing_resource_of_a_node_is_zero() -> None:
    assert allocatable({"status": {"allocatable": {"nvidia.com/gpu": "8"}}}, "nvidia.com/gpu") == 8
    assert allocatable({}, "nvidia.com/gpu") == 0
