"""What a stack costs an hour, from the price list and the stack's own prices."""

from __future__ import annotations

from typing import Any

import pytest

from config.data.prices import price_list
from config.data.skus import catalogue
from config.rules.cost import hourly_cost, price_meanwhile
from config.rules.vcpu_quota import Nodes, growths
from config.schema.network import NetworkSettings
from config.schema.pools import agent_pool_name
from tests.support.lookups import HUB
from tests.support.settings import settings_with
from tests.support.sizes import H100, T4

PRICES = price_list()
FIXED = 3 * 0.412 + 3 * 19.71 / 730 + 0.10 + 0.6666 / 24 + 0.03
"""Three nodes of the system pool with their disks, the control plane, the registry, the load balancer."""


def cost(*, nodes: dict[str, int] | None = None, **settings: Any) -> Any:
    return hourly_cost(settings_with(**settings), nodes or {})


def test_every_usable_size_has_a_price_in_the_reference_region() -> None:
    assert {size.name for size in catalogue().values() if size.supported and size.gpus} == set(PRICES.vms)
    found = [*PRICES.vms.values(), *PRICES.vcpus.values()]
    assert all(PRICES.region in regions for regions in found)
    assert all(price > 0 for regions in found for price in regions.values())
    assert set(PRICES.vcpus) <= {size.family for size in catalogue().values() if not size.gpus}
    assert PRICES.node("Standard_D8s_v5", "eastus") == pytest.approx(0.384)
    assert PRICES.node("Standard_D8s_v6", "eastus") is None, "the preview says how to set it"


def test_nodes_are_nearly_all_of_it() -> None:
    found = cost(vm_sku=H100, node_count=3)
    assert found.per_hour == pytest.approx(3 * 98.32 + FIXED, abs=0.01)
    assert found.output()["resources"][f"pool gpu: {H100}"] == pytest.approx(294.96)
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("network", "more"),
    [
        ({}, 0.0),
        ({"addressSpace": "10.0.0.0/16"}, 0.05 - 0.03),
        ({"addressSpace": "10.0.0.0/16", "outbound": "loadBalancer"}, 0.0),
        ({"id": HUB, "nodeSubnet": f"{HUB}/subnets/nodes"}, -0.03),
        ({"addressSpace": "10.0.0.0/16", "private": True}, 0.05 - 0.03 + 0.01),
    ],
)
def test_a_network_costs_its_way_out_and_its_private_endpoints(network: dict[str, Any], more: float) -> None:
    found = cost(vm_sku=H100, node_count=0, network=NetworkSettings.model_validate(network))
    assert found.per_hour == pytest.approx(FIXED + more, abs=0.006)


def test_no_nodes_cost_nothing() -> None:
    assert cost(vm_sku=H100, node_count=0).per_hour == pytest.approx(FIXED, abs=0.01)


def test_another_size_and_another_count_change_it() -> None:
    before = cost(vm_sku=H100).output()
    told = cost(vm_sku=H100, node_count=3).told(before).splitlines()
    assert told[0] == f"$296.43 per hour, before ${before['perHour']} (Azure's list prices, {PRICES.as_of}):"
    assert f"     $294.96  3 x pool gpu: {H100}" in told
    assert "before" not in cost(vm_sku=H100).told(before)
    assert "before" not in cost(vm_sku=H100).told(None), "of a new stack"
    assert cost(vm_sku="Standard_ND96isr_H200_v5").per_hour > before["perHour"]


def test_a_region_has_prices_of_its_own_or_those_of_another_which_is_said() -> None:
    assert cost(vm_sku=T4, location="westus").output()["resources"][f"pool gpu: {T4}"] == pytest.approx(2 * 0.631)
    assert f"2 x pool gpu: {T4} (price of eastus)" in cost(vm_sku=T4, location="norwayeast").told(None)


def test_spot_nodes_and_those_of_an_autoscaled_pool_are_said_apart() -> None:
    pools = {
        "spot": {"vmSku": T4, "spot": True, "count": 1},
        "many": {"vmSku": T4, "autoscale": {"min": 1, "max": 5}},
    }
    name = agent_pool_name("many", settings_with(pools=pools).gpu_pools()["many"])
    found = cost(pools=pools, nodes={name: 4})
    assert f"       $0.53  Spot pool spot: {T4} (at most)" in found.told(None)
    assert f"       $2.10  4 x pool many: {T4} (up to 5 nodes)" in found.told(None), "as the autoscaler has it now"
    assert f"5 x pool many: {T4}\n" in cost(pools=pools, nodes={name: 5}).told(None), "it cannot grow"


@pytest.mark.parametrize(("replace", "lines"), [("create-first", 1), ("delete-first", 0)])
def test_pools_that_are_replaced_cost_more_until_the_old_ones_are_deleted(replace: str, lines: int) -> None:
    settings = settings_with(pools={"gpu": {"vmSku": H100, "count": 2, "replace": replace}})
    there = {"gpu0a1b": Nodes("Standard_NC4as_T4_v3", 3), "system": Nodes("Standard_D8ads_v5", 3)}
    found = list(price_meanwhile(settings, growths(settings, there, "system", {})))
    assert len(found) == lines
    for line in found:
        assert line.endswith(f"the old ones cost $1.58 per hour more, and use vCPU quota (3 x {T4})")


def test_a_stack_says_its_own_price() -> None:
    found = cost(vm_sku=H100, prices={H100: "60.5"})
    assert found.output()["resources"][f"pool gpu: {H100}"] == pytest.approx(121.0)
    assert "(your price)" in found.told(None)


def test_what_has_no_price_is_said_and_not_in_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PRICES.vms, H100)
    found = cost(vm_sku=H100)
    assert found.per_hour == pytest.approx(FIXED, abs=0.01)
    assert found.output()["unknown"] == [f"pool gpu: {H100}"]
    assert f"pulumi config set --path prices.{H100} <USD per hour>" in found.told(None)


@pytest.mark.parametrize(
    ("gib", "month"), [(30, 5.28), (32, 5.28), (33, 10.21), (128, 19.71), (129, 38.02), (2048, 259.2)]
)
def test_a_disk_costs_by_the_tier_that_it_fills(gib: int, month: float) -> None:
    assert PRICES.disk(gib) == pytest.approx(month / 730)


def test_a_managed_disk_of_the_size_s_default_is_counted_and_an_ephemeral_one_costs_nothing() -> None:
    assert cost(vm_sku=T4).output()["resources"]["pool gpu: OS disk of 512 GB"] == pytest.approx(
        2 * 73.22 / 730, abs=1e-4
    )
    assert not [what for what in cost(vm_sku=H100).output()["resources"] if what.startswith("pool gpu: OS")]
