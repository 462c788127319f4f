"""Azure refuses for a while: what a user sees then, and how the next `pulumi up` goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.sizes import H100
from tests.support.world import Stack, World, gpu_nodes

pytestmark = [pytest.mark.simulator, pytest.mark.long]


@pytest.fixture(autouse=True)
def _healed(world: World) -> Iterator[None]:
    yield
    world.simulator("heal")


def test_up_bears_throttling_stops_for_want_of_machines_and_goes_on(new_stack: Callable[..., Stack]) -> None:
    stack = new_stack("refused", workloads=None)
    stack.world.simulator("fault", "capacity", "--size", H100)
    stack.world.simulator("fault", "throttle", "--seconds", "10")
    said = stack.up(check=False)
    assert stack.returncode != 0
    assert 'Code="OverconstrainedAllocationRequest"' in said
    assert "pools.gpu.osDiskType Managed" in said, "the program explains it"
    assert "SubscriptionRequestsThrottled" not in said
    assert gpu_nodes(stack.kube) == []
    stack.world.simulator("heal", "capacity")
    steps = stack.steps()
    assert steps["azure-native:containerservice:AgentPool pool-gpu"] == "update"
    assert "azure-native:containerservice:ManagedCluster cluster" not in steps
    assert len(gpu_nodes(stack.kube)) == 2
