from __future__ import annotations

from typing import Any

import pytest

from config.rules.vcpu_quota import SPOT, TOTAL, Nodes, growths, quota_objections
from config.schema.cluster import ClusterSettings
from config.schema.models import Settings
from config.schema.network import NetworkSettings
from config.schema.pools import PoolSettings, agent_pool_name
from tests.support.case_files import case_table
from tests.support.lookups import MANY, usage
from tests.support.settings import A100, settings_with
from tests.support.sizes import H100

SYSTEM, ND, NC, T4S = (
    "standardDADSv5Family",
    "standardNDSH100v5Family",
    "StandardNCADSA100v4Family",
    "Standard NCASv3_T4 Family",
)
UP = {"system": Nodes("Standard_D8ads_v5", 3)}
PAGE = "https://portal.azure.com/#view/Microsoft_Azure_Capacity/QuotaMenuBlade/~/myQuotas"


def settings(**pools: dict[str, Any]) -> Settings:
    return settings_with(pools={key: PoolSettings.model_validate(pool) for key, pool in pools.items()})


def named(chosen: Settings, key: str = "gpu", **before: Any) -> str:
    pool = chosen.pools[key]
    return agent_pool_name(key, pool.model_copy(update=before))


def objected(chosen: Settings, there: dict[str, Nodes], *, reserved: int = 0, **left: int) -> list[str]:
    """Returns objections if these vCPUs are left in the quotas, and many in others."""
    found = growths(chosen, there, "system", dict.fromkeys(chosen.gpu_pools(), reserved))
    quotas = dict.fromkeys((SPOT, TOTAL, SYSTEM, ND, NC, T4S), MANY) | left
    answer = {"value": [usage(name, limit + 100, used=100) for name, limit in quotas.items()]}
    return [str(each) for each in quota_objections(found, answer, chosen)]


def added(chosen: Settings, there: dict[str, Nodes]) -> dict[str, tuple[int, int]]:
    return {growth.pool: (growth.now, growth.later) for growth in growths(chosen, there, "system", {})}


def test_a_new_stack_adds_all_its_nodes() -> None:
    assert added(settings(gpu={"vmSku": H100}), {}) == {"pool system": (3, 0), "pool gpu": (2, 0)}
    flat = settings_with(vm_sku=H100, node_count=3)
    assert added(flat, {}) == {"pool system": (3, 0), "pool gpu": (3, 0)}


def test_a_jump_box_counts_only_with_a_new_cluster() -> None:
    network = NetworkSettings.model_validate({"addressSpace": "10.0.0.0/16", "private": True, "jumpBox": {}})
    chosen = settings_with(pools={"gpu": PoolSettings(vm_sku=H100, count=0)}, network=network)
    assert added(chosen, {}) == {"pool system": (3, 0), "pool gpu": (0, 0), "the jump box": (1, 0)}
    assert "the jump box" not in added(chosen, UP)
    (short, *_) = objected(chosen, {}, **{"standardDSv5Family": 1})
    assert short.startswith(
        "2 vCPUs of quota standardDSv5Family are needed in eastus (the jump box: 1 node of Standard_D2s_v5), and 1 of"
    )


@case_table(__file__, "growth")
def test_an_existing_pool_counts_only_its_growth(pool: dict[str, Any], has: int, more: dict[str, list[int]]) -> None:
    chosen = settings(gpu={"vmSku": H100, **pool})
    assert added(chosen, {**UP, named(chosen): Nodes(H100, has)}) == {
        pool: tuple(nodes) for pool, nodes in more.items()
    }


def test_a_new_pool_without_nodes_counts() -> None:
    assert added(settings(gpu={"vmSku": H100, "count": 0}), UP) == {"pool gpu": (0, 0)}


@case_table(__file__, "fits")
def test_nodes_of_the_update_need_quota(pool: dict[str, Any], left: dict[str, int], expected: list[str]) -> None:
    lines = objected(settings(gpu=pool), {}, **left)
    assert [line.partition(" are needed in eastus (")[0] for line in lines] == expected


@pytest.mark.parametrize(
    ("count", "has", "reserved", "short"), [(2, 0, 2, 0), (4, 0, 2, 2), (4, 3, 2, 1), (4, 3, 4, 0)]
)
def test_reserved_nodes_need_no_quota(count: int, has: int, reserved: int, short: int) -> None:
    """The reservation has used quota (Microsoft, "Create a capacity reservation")."""
    chosen = settings(gpu={"vmSku": A100, "count": count})
    there = {**UP, **({named(chosen): Nodes(A100, has)} if has else {})}
    assert len(objected(chosen, there, reserved=reserved, **{NC: max(short * 24 - 1, 0)})) == bool(short)
    assert objected(chosen, there, reserved=reserved, **{NC: short * 24}) == []


def test_the_autoscaler_may_add_more_than_the_reserved_nodes() -> None:
    chosen = settings(gpu={"vmSku": A100, "autoscale": {"min": 1, "max": 5}})
    found = growths(chosen, UP, "system", {"gpu": 3})
    assert [(each.now, each.later) for each in found] == [(0, 2)]


def test_pools_of_one_family_share_a_quota() -> None:
    chosen = settings(a={"vmSku": H100, "count": 6}, b={"vmSku": H100, "count": 5}, c={"vmSku": A100, "count": 1})
    (line,) = objected(chosen, UP, **{ND: 960})
    what, *steps = line.splitlines()
    assert what == (
        f"1056 vCPUs of quota {ND} are needed in eastus (pool a: 6 nodes of {H100}, pool b: 5 nodes of {H100}), "
        "and 960 of 1060 are left"
    )
    assert len(steps) == 2, "the user decides which pool gets fewer nodes"


def test_the_steps_are_a_request_and_fewer_nodes() -> None:
    chosen = settings(gpu={"vmSku": H100, "count": 12})
    (line,) = objected(chosen, {**UP, named(chosen): Nodes(H100, 2)}, **{ND: 200})
    what, *steps = line.splitlines()
    assert f"(pool gpu: 10 more nodes of {H100})" in what
    assert steps == [
        "    az vm list-usage --location eastus --output table",
        f"    {PAGE}    # request more",
        "    pulumi config set -s test --path pools.gpu.count 4    # or fewer nodes",
    ]
    flat = settings_with(vm_sku=H100, node_count=3)
    assert "pulumi config set -s test nodeCount 1 " in objected(flat, UP, **{ND: 96})[0]
    assert "or fewer" not in objected(flat, UP, **{ND: 95})[0]


def test_the_page_is_in_the_cloud_of_the_region() -> None:
    flat = settings_with(vm_sku=H100, location="usgovvirginia")
    assert "https://portal.azure.us/#view/" in objected(flat, UP, **{ND: 0})[0]


@case_table(__file__, "replaced")
def test_a_replaced_pool_needs_quota_for_both_unless_the_old_one_is_deleted_first(
    pool: dict[str, Any], left: int, step: str, *, rejected: bool
) -> None:
    chosen = settings(gpu={"vmSku": H100, **pool})
    lines = objected(chosen, {**UP, named(chosen, os_disk_gb=64): Nodes(H100.lower(), 2)}, **{ND: left})
    assert bool(lines) is rejected
    assert [each.strip() for line in lines for each in line.splitlines() if "delete-first" in each] == [step] * bool(
        step
    )


def test_a_pool_of_another_family_frees_no_quota() -> None:
    chosen = settings(gpu={"vmSku": H100, "replace": "delete-first"})
    assert objected(chosen, {**UP, named(chosen, vm_sku=A100): Nodes(A100, 8)}, **{ND: 191})
    assert objected(chosen, {**UP, named(chosen, spot=True): Nodes(H100, 8, spot=True)}, **{ND: 191})


def test_the_replaced_pool_has_the_same_key() -> None:
    chosen = settings(sy={"vmSku": H100, "replace": "delete-first"})
    there = {"system": Nodes(H100, 8), named(chosen, "sy", spot=True)[1:]: Nodes(H100, 8)}
    assert objected(chosen, there, **{ND: 191})


def test_possible_nodes_of_the_autoscaler_cause_only_a_warning() -> None:
    chosen = settings(gpu={"vmSku": H100, "autoscale": {"min": 2, "max": 8}})
    answer = {"value": [usage(name, 700) for name in (SPOT, TOTAL, SYSTEM, ND)]}
    warned, total = quota_objections(growths(chosen, {}, "system", {}), answer, chosen)
    assert warned.what == f"768 vCPUs of quota {ND} may be needed in eastus (autoscaler of pool gpu), and 700 are left"
    assert not warned.stops
    assert not total.stops
    assert quota_stops(chosen, {"value": [usage(name, 100) for name in (SPOT, TOTAL, SYSTEM, ND)]}) == [True, True]


def quota_stops(chosen: Settings, answer: dict[str, Any]) -> list[bool]:
    return [each.stops for each in quota_objections(growths(chosen, {}, "system", {}), answer, chosen)]


def test_a_limit_below_the_usage_only_prevents_growth() -> None:
    chosen = settings(gpu={"vmSku": H100, "autoscale": {"min": 1, "max": 8}})
    (warning,) = objected(chosen, {**UP, named(chosen): Nodes(H100, 2)}, **{ND: -96})
    assert warning.startswith(
        f"576 vCPUs of quota {ND} may be needed in eastus (autoscaler of pool gpu), and 0 are left"
    )
    assert objected(settings(gpu={"vmSku": H100, "count": 2}), {**UP, named(chosen): Nodes(H100, 2)}, **{ND: -96}) == []


@pytest.mark.parametrize("answer", [{}, {"value": []}, {"value": [{}]}])
def test_warns_about_a_quota_that_azure_does_not_list(answer: dict[str, Any]) -> None:
    assert quota_stops(settings(gpu={"vmSku": H100}), answer) == [False, False, False]


def test_names_of_quotas_ignore_spaces() -> None:
    spaced = {"value": [usage(name, 0) for name in (SYSTEM, TOTAL, "standardNDAMSv4_A100Family")]}
    assert quota_stops(settings(gpu={"vmSku": "Standard_ND96amsr_A100_v4"}), spaced) == [True, True, True]


def test_names_of_quotas_ignore_case() -> None:
    lower = {"value": [usage(name.lower(), 0) for name in (SYSTEM, TOTAL, ND)]}
    assert quota_stops(settings(gpu={"vmSku": H100}), lower) == [True, True, True]


A100X4 = "Standard_NC96ads_A100_v4"


@case_table(__file__, "upgrades")
def test_an_upgrade_counts_the_surge_node(pool: dict[str, Any], runs: str, wanted: str, needed: int) -> None:
    chosen = settings(gpu=pool).model_copy(update={"cluster": ClusterSettings(kubernetes_version=wanted)})
    name, spot = named(chosen), bool(pool.get("spot"))
    there = {**UP, name: Nodes(pool["vmSku"], 1, spot=spot, version=runs)}
    found = growths(chosen, there, "system", {})
    assert sum(each.at_once * each.sku.vcpus for each in found) == needed
    answer = {"value": [usage(name, 192, used=96) for name in (NC, ND, TOTAL, SPOT)]}
    lines = [str(each) for each in quota_objections(found, answer, chosen)]
    assert len(lines) == (2 if needed > 96 else 0), "the quotas of the family and of the region"
    assert all("with the surge node of its upgrade" in line for line in lines)


def test_rejects_an_upgrade_without_quota_for_its_surge_node() -> None:
    chosen = settings(gpu={"vmSku": A100X4, "count": 2})
    there = {**UP, named(chosen): Nodes(A100X4, 2, version="1.33.1")}
    (line,) = objected(chosen, there, **{NC: 95})
    what, *steps = line.splitlines()
    assert f"(pool gpu: 1 more node of {A100X4} with the surge node of its upgrade)" in what
    assert steps[-1] == "    pulumi config set -s test --path pools.gpu.count 1    # or fewer nodes"


def test_fewer_nodes_fit_all_quotas_of_the_pool() -> None:
    """A pool's nodes need their family's quota and the region's total."""
    chosen = settings(gpu={"vmSku": H100, "count": 8})
    objections = objected(chosen, UP, **{ND: 5 * 96, TOTAL: 3 * 96})
    assert len(objections) == 2
    assert all("pulumi config set -s test --path pools.gpu.count 3    # or fewer nodes" in each for each in objections)
