from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.data.scheduling import SPOT_TAINT
from k8s.objects import condition
from simulator.azure import spot
from simulator.azure.spot import NOTICE_S, Evictor
from simulator.azure.types.agent_pool import life
from simulator.world.evictions import Eviction, EvictionStore, Rate
from simulator.world.faults import FaultKind, new_fault
from tests.support.arm import Arm, pool_body, pool_path
from tests.support.networks import make
from tests.support.scaled_cluster import ScaledCluster, pod
from tests.support.sizes import T4


class Evictions:
    """`look` runs the evictor some seconds later."""

    def __init__(self, arm: Arm, folder: Path) -> None:
        self.cluster, self.store, self.now = ScaledCluster(arm), EvictionStore(folder), 0.0
        server = arm.server
        kube = self.cluster.kube.as_client()
        self.evictor = Evictor(server.world, server.operations, lambda _: kube, self.store, lambda: self.now)

    def make(self, **properties: Any) -> list[str]:
        body = pool_body(vmSize=T4, scaleSetPriority="Spot", **{"count": 3, "nodeTaints": [SPOT_TAINT]} | properties)
        assert self.cluster.arm.put(pool_path(), body).is_success
        self.cluster.arm.done()
        self.cluster.sync()
        return self.cluster.nodes()

    def look(self, later: float = 0) -> None:
        self.now += later
        self.evictor.look()
        self.cluster.arm.done()
        self.cluster.sync()


@pytest.fixture
def evictions(cluster: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evictions]:
    monkeypatch.setattr(spot, "_TICK_S", 3600)
    monkeypatch.setattr(life, "ALLOCATION_S", 0.01)
    made = Evictions(cluster, tmp_path)
    yield made
    made.evictor.stop()


def count(evictions: Evictions) -> int:
    found: int = evictions.cluster.arm.get(pool_path())["properties"]["count"]
    return found


def test_drains_an_evicted_node_and_removes_it_after_thirty_seconds(evictions: Evictions) -> None:
    first, second, third = evictions.make()
    kube = evictions.cluster.kube
    evictions.cluster.add(pod("job", second, gpu=1), pod("driver", second, "DaemonSet"), pod("other", first, gpu=1))
    evictions.store.ask(Eviction(second))
    evictions.look()
    node = kube.find("v1", "Node", second)
    assert node
    assert condition(node, "VMEventScheduled")["message"].startswith("Preempt Scheduled: ")
    assert node["spec"]["unschedulable"]
    assert {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert {each["metadata"]["name"] for each in kube.list("v1", "Pod")} == {"driver", "other"}
    evictions.look(NOTICE_S - 1)
    assert evictions.cluster.nodes() == [first, second, third]
    evictions.look(1)
    assert (evictions.cluster.nodes(), count(evictions)) == ([first, third], 2)
    assert evictions.cluster.arm.get(pool_path())["properties"]["provisioningState"] == "Succeeded"
    assert len(evictions.cluster.events("PreemptScheduled")) == 1, "once"
    assert evictions.store.all() == []


def test_an_eviction_may_skip_the_drain(evictions: Evictions) -> None:
    first, *others = evictions.make()
    evictions.cluster.add(pod("job", first, gpu=1))
    evictions.store.ask(Eviction(first, drains=False))
    evictions.look()
    assert len(evictions.cluster.events("PreemptScheduled")) == 1
    evictions.look(NOTICE_S - 1)
    assert evictions.cluster.kube.find("v1", "Pod", "job", "ai")
    evictions.look(1)
    assert evictions.cluster.nodes() == others


def test_the_policy_deallocate_stops_the_machine(evictions: Evictions) -> None:
    nodes = evictions.make(scaleSetEvictionPolicy="Deallocate")
    evictions.store.ask(Eviction(nodes[0]))
    evictions.look()
    evictions.look(NOTICE_S)
    assert (evictions.cluster.nodes(), count(evictions)) == (nodes, 3), "still counts against the quota"
    faults = evictions.cluster.arm.server.world.faults.load()
    assert [(fault.node, fault.kind) for fault in faults] == [(nodes[0], FaultKind.NODE)]


def test_new_machines_have_new_names(evictions: Evictions) -> None:
    nodes = evictions.make()
    evictions.store.ask(Eviction(nodes[0]))
    evictions.look()
    evictions.look(NOTICE_S)
    assert evictions.make(count=4)[:2] == nodes[1:]
    assert [name[-6:] for name in evictions.cluster.nodes()] == ["000001", "000002", "000003", "000004"]


@pytest.mark.parametrize("name", ["aks-gpu-00000000-vmss000000", "system"])
def test_ignores_evictions_of_other_machines(evictions: Evictions, name: str) -> None:
    nodes = evictions.make()
    evictions.store.ask(Eviction(evictions.cluster.nodes("system")[0] if name == "system" else name))
    evictions.look()
    evictions.look(NOTICE_S)
    assert (evictions.cluster.nodes(), evictions.store.all()) == (nodes, [])
    assert len(evictions.cluster.nodes("system")) == 2


def chosen_at(evictions: Evictions, rate: Rate) -> list[tuple[float, str]]:
    evictions.store.set_rate(rate)
    found: list[tuple[float, str]] = []
    evictions.look()
    began = evictions.now
    while evictions.now < began + 600:
        evictions.look(1)
        found += [(evictions.now - began, each.node) for each in evictions.store.all() if each.node not in str(found)]
    evictions.store.set_rate(None)
    return found


def test_a_rate_evicts_nodes_by_its_seed(evictions: Evictions) -> None:
    evictions.make(count=20)
    found = chosen_at(evictions, Rate(60, seed=3))
    assert 5 <= len(found) <= 16, "ten are expected"
    assert len({node for _, node in found}) == len(found)
    evictions.look(NOTICE_S)
    evictions.make(count=20)
    again = chosen_at(evictions, Rate(60, seed=3))
    assert [when for when, _ in again] == [when for when, _ in found], "the seed decides the times"
    evictions.look(3600)
    assert evictions.store.all() == [], "none without a rate"


def test_a_price_above_the_maximum_evicts_all_machines(evictions: Evictions) -> None:
    arm = evictions.cluster.arm
    evicted, paying = evictions.make(spotMaxPrice=0.2), {"vmSize": T4, "scaleSetPriority": "Spot", "nodeTaints": None}
    make(arm, pool_path("paying"), pool_body(count=1, **paying))
    arm.server.world.faults.fault(new_fault("price", size=T4, usd=0.25))
    evictions.look()
    assert [each.node for each in evictions.store.all()] == evicted, "-1 pays any price"
    evictions.look(NOTICE_S)
    assert evictions.cluster.nodes() == []
    assert evictions.make(count=1, spotMaxPrice=0.2) == []
    record = next(pool for pool in arm.server.world.store.all(life.TYPE) if pool.id.name == "gpu")
    assert record.error
    assert record.error["code"] == "SpotPriceGreaterThanProvidedMaxPrice"
    assert "max price '0.2 USD' is lower than the current spot price '0.25 USD'" in record.error["message"]
    arm.server.world.faults.fault(new_fault("price", size=T4, usd=0.15))
    assert len(evictions.make(count=2, spotMaxPrice=0.2)) == 2
    evictions.look()
    assert evictions.store.all() == []


@pytest.mark.parametrize(
    ("there", "zones", "code"),
    [(2, None, "OverconstrainedAllocationRequest"), (0, ["1"], "OverconstrainedZonalAllocationRequest")],
)
def test_a_pool_gets_the_available_spot_machines(
    evictions: Evictions, there: int, zones: list[str] | None, code: str
) -> None:
    arm = evictions.cluster.arm
    arm.server.world.faults.fault(new_fault("capacity", size=T4, spot=there))
    assert len(evictions.make(availabilityZones=zones)) == there
    record = next(pool for pool in arm.server.world.store.all(life.TYPE) if pool.id.name == "gpu")
    assert record.error
    assert (record.state, record.error["code"]) == ("Failed", code)
    assert "\n  - Low Priority VMs\n" in record.error["message"]
    make(arm, pool_path("regular"), pool_body(vmSize=T4, count=3))
    assert len(evictions.cluster.nodes("regular")) == 3, "not limited"
    make(arm, pool_path("second"), pool_body(vmSize=T4, count=1, scaleSetPriority="Spot", nodeTaints=None))
    assert evictions.cluster.nodes("second") == [], "pools share the limit"
