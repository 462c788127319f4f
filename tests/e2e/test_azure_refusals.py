from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.sizes import H100
from tests.support.world import Stack, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.long]


def test_up_retries_throttling_and_continues_once_azure_has_machines(new_stack: Callable[..., Stack]) -> None:
    stack = new_stack("refused", workloads=None)
    stack.world.simulator("fault", "capacity", "--size", H100)
    stack.world.simulator("fault", "throttle", "--seconds", "10")
    output = stack.up(check=False)
    stack.world.simulator("heal")
    assert stack.returncode != 0
    assert 'Code="OverconstrainedAllocationRequest"' in output
    assert "pools.gpu.osDiskType Managed" in output, "the program explains the error"
    assert "SubscriptionRequestsThrottled" not in output
    assert gpu_nodes(stack.kube) == []
    steps = stack.steps()
    assert steps["azure-native:containerservice:AgentPool pool-gpu"] == "update"
    assert "azure-native:containerservice:ManagedCluster cluster" not in steps
    assert len(gpu_nodes(stack.kube)) == 2
