"""No command of a fix makes a stack dearer, takes another's share, or sets what nobody has named."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pydantic import ValidationError

from config.problems.errors import SettingsError
from config.rules.cost import hourly_cost
from config.schema.pools import gpu_sizes
from tests.support.settings import A100, H100, INVENTORY, T4, load, platform
from tests.units.config import cases, commands
from tests.units.config.fix_words import KNOWN, by_hand, changed, fix_of, moved

CASES = cases.read()
INVENTED = ("example.com", "00000000-")
GANGS = {"scheduler": "scheduler-plugins-scheduler", "kueue": {"enabled": True}, "appwrapper": {"enabled": True}}


def price(stack: dict[str, Any]) -> float | None:
    """Returns what a stack costs per hour; None where its settings do not describe one."""
    keys = {key: value for key, value in stack.items() if ":" not in key and key != "workloads"}
    try:
        settings: Any = INVENTORY.stack_file.model_validate(keys, by_alias=True, by_name=False)
    except ValidationError:
        return None
    return hourly_cost(settings, {}).per_hour if settings.gpu_pools() else None


def check(stack: dict[str, Any], **options: Any) -> None:
    """Checks the commands that a stack is offered."""
    try:
        load(stack, **options)
    except SettingsError as error:
        fixes = [each.mending for each in error.problems if each.mending.can_be_tried]
    else:
        return
    before = price(stack)
    for fix in filter(lambda fix: commands.is_command(str(fix)), fixes):
        after = price(commands.mended(stack, str(fix)))
        assert before is None or after is None or after <= before, fix
        assert not [each for each in INVENTED if each in str(fix) and each not in str(stack)], fix


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_no_command_makes_a_stack_dearer_or_invents_a_name(case: dict[str, Any]) -> None:
    others = {name: platform(stack) for name, stack in case.get("platforms", {}).items()} | case.get("others", {})
    check(case["stack"], name=case.get("name", "dev"), others=others)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_no_command_gives_a_workload_dearer_nodes(name: str) -> None:
    for size, nodes in itertools.product(gpu_sizes(), (0, 1, 2, 5)):
        check({"vmSku": size, "nodeCount": nodes, "workloads": name}, known=KNOWN)


PRICED = "Standard_NC4as_T4_v3 ($0.53), Standard_NC8as_T4_v3 ($0.75), "


@pytest.mark.parametrize("key", ["sku", "size", "vmSize", "skuName", "instanceType", "machine"])
def test_a_size_under_another_name_is_kept(key: str) -> None:
    fix = moved("pools.gpu.vmSku", A100, f"pools.gpu.{key}")
    with pytest.raises(SettingsError) as caught:
        load({"pools": {"gpu": {key: A100}}})
    assert [problem.fix for problem in caught.value.problems] == [fix]


@pytest.mark.parametrize(
    ("stack", "path"), [({"nodeCount": 1}, "vmSku"), ({"pools": {"gpu": {"count": 1}}}, "pools.gpu.vmSku")]
)
def test_a_size_that_is_not_set_is_chosen_by_price(stack: dict[str, Any], path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(stack)
    (problem,) = caught.value.problems
    assert problem.fix == f"set {path} in the stack file to what is allowed"
    assert problem.allowed.startswith(PRICED)


@pytest.mark.parametrize("size", ["Standard_NV6ads_A10_v5", "Standard_NV36ads_A10_v5", "Standard_NC24s_v3"])
def test_a_size_of_azure_that_is_not_known_is_not_replaced(size: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": size})
    (problem,) = caught.value.problems
    assert problem.what.startswith(f"is {size!r}, a VM size that this program does not know")
    assert (problem.fix, problem.allowed[: len(PRICED)]) == (changed("vmSku"), PRICED)


@pytest.mark.parametrize("size", ["Standard_ND96isr_H100", "nd96isr_h100_v5", "Standard-ND96isr-H100-v5"])
def test_a_size_that_is_written_differently_is_set(size: str) -> None:
    assert fix_of({"vmSku": size}) == f"pulumi config set vmSku {H100}"


@pytest.mark.parametrize("name", ["myacr", "acr1", "mirror", "https://mirror"])
def test_a_registry_without_a_domain_is_completed_by_the_user(name: str) -> None:
    assert fix_of({"images": {"registry": name}}) == changed("images.registry")


@pytest.mark.parametrize(
    "bounds", [{"min": 1, "maximum": 8}, {"minimum": 0, "maximum": 4}, {"min": 1, "maxReplicas": 8}]
)
def test_the_bounds_of_a_pool_are_kept(bounds: dict[str, int]) -> None:
    stack = {"pools": {"gpu": {"vmSku": A100, "autoscale": bounds}}}
    with pytest.raises(SettingsError) as caught:
        load(stack)
    for problem in caught.value.problems:
        for path, value in commands.parsed(problem.fix) if commands.is_command(problem.fix) else ():
            assert value in {None, *bounds.values()}, path


@pytest.mark.parametrize("key", ["instances", "instanceCount", "vmCount"])
def test_a_number_of_nodes_under_another_name_is_kept(key: str) -> None:
    assert fix_of({"pools": {"gpu": {"vmSku": T4, key: 3}}}) == moved("pools.gpu.count", 3, f"pools.gpu.{key}")


def test_a_price_of_spot_nodes_under_another_name_is_kept() -> None:
    pool = {"vmSku": T4, "spot": True, "maxPrice": 1.5}
    assert fix_of({"pools": {"gpu": pool}}) == moved("pools.gpu.spotMaxPrice", 1.5, "pools.gpu.maxPrice")


def test_the_fix_of_one_team_changes_no_other_team() -> None:
    stack: dict[str, Any] = {"operators": GANGS, "teams": {"blue": {"gpu": 8}, "red": {"gpus": 16}}}
    assert fix_of(stack) == moved("teams.blue.gpus", 8, "teams.blue.gpu")
    stack["teams"]["blue"] = {"gpus": 8}
    listed = "teams.blue.gpus (8), teams.red.gpus (16)"
    assert fix_of(stack) == f"lower one or more of {listed} by 8 in all in the stack file, or add nodes"


def test_no_command_switches_the_scheduler_of_teams() -> None:
    stack = {"operators": GANGS, "teams": {"blue": {"gpus": 8}}, "workloads": "nccl-allreduce"}
    assert fix_of(stack).startswith("give nccl-allreduce a stack of its own, without teams; or set operators.scheduler")
    assert "refused: all jobs of teams" in fix_of(stack)


def test_a_time_zone_is_an_offset_here() -> None:
    window = "cluster.maintenanceWindow"
    fix = fix_of({"cluster": {"maintenanceWindow": {"day": "Sunday", "timezone": "Europe/Berlin"}}})
    assert fix == by_hand(f"{window}.utcOffset", f"{window}.timezone")


def test_a_count_beside_autoscale_is_removed_and_no_bound_raised() -> None:
    pool = {"vmSku": T4, "autoscale": {"min": 3, "max": 8}}
    for count in (1, 5, 9):
        assert fix_of({"pools": {"gpu": {**pool, "count": count}}}) == "pulumi config rm --path pools.gpu.count"
    load({"pools": {"gpu": pool}})


@pytest.mark.parametrize(
    ("size", "read"), [("d4s_v5", "Standard_D4s_v5"), ("Standard_D4_v5", ""), ("Standard_B2s", "")]
)
@pytest.mark.parametrize("path", ["network.jumpBox.vmSku", "cluster.systemPool.vmSku"])
def test_another_size_without_gpus_is_not_replaced(path: str, size: str, read: str) -> None:
    section, machine, _ = path.split(".")
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, section: {machine: {"vmSku": size}}})
    fixes = {".".join(map(str, problem.path)): problem.fix for problem in caught.value.problems}
    assert fixes[path] == (f"pulumi config set --path {path} {read}" if read else changed(path))
