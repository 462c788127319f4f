from __future__ import annotations

from typing import Any

import pytest

from config.data.prices import price_list
from config.data.skus import catalogue
from config.rules.cost import hourly_cost, price_replaced_pools
from config.rules.vcpu_quota import Nodes, growths
from config.schema.network import NetworkSettings
from config.schema.pools import agent_pool_name
from tests.support.lookups import HUB
from tests.support.settings import settings_with
from tests.support.sizes import H100, T4

PRICES = price_list()
FIXED = 3 * 0.412 + 3 * 19.71 / 730 + 0.10 + 0.6666 / 24 + 0.03
"""Three system nodes with disks, the control plane, the registry, the load balancer."""


def cost(*, nodes: dict[str, int] | None = None, **settings: Any) -> Any:
    return hourly_cost(settings_with(**settings), nodes or {})


def test_every_supported_gpu_size_has_a_price() -> None:
    assert {size.name for size in catalogue().values() if size.supported and size.gpus} == set(PRICES.vms)
    found = [*PRICES.vms.values(), *PRICES.vcpus.values()]
    assert all(PRICES.region in regions for regions in found)
    assert all(price > 0 for regions in found for price in regions.values())
    assert set(PRICES.vcpus) <= {size.family for size in catalogue().values() if not size.gpus}
    assert PRICES.node("Standard_D8s_v5", "eastus") == pytest.approx(0.384)
    assert PRICES.node("Standard_D8s_v6", "eastus") is None, "the preview prints how to set it"


def test_cost_of_a_stack() -> None:
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
def test_cost_of_a_network(network: dict[str, Any], more: float) -> None:
    found = cost(vm_sku=H100, node_count=0, network=NetworkSettings.model_validate(network))
    assert found.per_hour == pytest.approx(FIXED + more, abs=0.006)


def test_the_text_compares_with_the_previous_cost() -> None:
    before = cost(vm_sku=H100).output()
    lines = cost(vm_sku=H100, node_count=3).listing(before).splitlines()
    assert lines[0] == f"$296.43 per hour, before ${before['perHour']} (Azure's list prices, {PRICES.as_of}):"
    assert f"     $294.96  3 x pool gpu: {H100}" in lines
    assert "before" not in cost(vm_sku=H100).listing(before)
    assert "before" not in cost(vm_sku=H100).listing(None), "of a new stack"
    assert cost(vm_sku="Standard_ND96isr_H200_v5").per_hour > before["perHour"]


def test_prices_of_a_region_or_of_the_default_region() -> None:
    assert cost(vm_sku=T4, location="westus").output()["resources"][f"pool gpu: {T4}"] == pytest.approx(2 * 0.631)
    assert f"2 x pool gpu: {T4} (price of eastus)" in cost(vm_sku=T4, location="norwayeast").listing(None)


def test_spot_and_autoscaled_nodes_have_a_note() -> None:
    pools = {
        "spot": {"vmSku": T4, "spot": True, "count": 1},
        "many": {"vmSku": T4, "autoscale": {"min": 1, "max": 5}},
    }
    name = agent_pool_name("many", settings_with(pools=pools).gpu_pools()["many"])
    found = cost(pools=pools, nodes={name: 4})
    assert f"       $0.53  Spot pool spot: {T4} (at most)" in found.listing(None)
    assert f"       $2.10  4 x pool many: {T4} (up to 5 nodes)" in found.listing(None), "the current number"
    assert f"5 x pool many: {T4}\n" in cost(pools=pools, nodes={name: 5}).listing(None), "it cannot grow"


@pytest.mark.parametrize(("replace", "lines"), [("create-first", 1), ("delete-first", 0)])
def test_old_pools_cost_until_they_are_deleted(replace: str, lines: int) -> None:
    settings = settings_with(pools={"gpu": {"vmSku": H100, "count": 2, "replace": replace}})
    there = {"gpu0a1b": Nodes("Standard_NC4as_T4_v3", 3), "system": Nodes("Standard_D8ads_v5", 3)}
    found = list(price_replaced_pools(settings, growths(settings, there, "system", {})))
    assert len(found) == lines
    for line in found:
        assert line.endswith(f"the old pools cost $1.58 more per hour, and use vCPU quota (3 x {T4})")


def test_prices_of_the_stack() -> None:
    found = cost(vm_sku=H100, prices={H100: "60.5"})
    assert found.output()["resources"][f"pool gpu: {H100}"] == pytest.approx(121.0)
    assert "(your price)" in found.listing(None)


def test_an_unknown_price_is_not_in_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PRICES.vms, H100)
    found = cost(vm_sku=H100)
    assert found.per_hour == pytest.approx(FIXED, abs=0.01)
    assert found.output()["unknown"] == [f"pool gpu: {H100}"]
    assert f"pulumi config set --path prices.{H100} <USD per hour>" in found.listing(None)


@pytest.mark.parametrize(
    ("gib", "month"), [(30, 5.28), (32, 5.28), (33, 10.21), (128, 19.71), (129, 38.02), (2048, 259.2)]
)
def test_a_disk_has_the_price_of_its_tier(gib: int, month: float) -> None:
    assert PRICES.disk(gib) == pytest.approx(month / 730)


def test_managed_disks_cost_and_ephemeral_ones_do_not() -> None:
    assert cost(vm_sku=T4).output()["resources"]["pool gpu: OS disk of 512 GB"] == pytest.approx(
        2 * 73.22 / 730, abs=1e-4
    )
    assert not [what for what in cost(vm_sku=H100).output()["resources"] if what.startswith("pool gpu: OS")]
