from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

from components.preflight.existing_cluster import PROFILES, excluded_nodes, removed_nodes, report_pool_changes
from config.schema.pools import agent_pool_name
from tests.support.case_files import case_table
from tests.support.mocks import deploy
from tests.support.settings import load
from tests.support.sizes import H100

STACK: dict[str, Any] = {"pools": {"gpu": {"vmSku": H100, "count": 1}}}
NAME = agent_pool_name("gpu", load(STACK).gpu_pools()["gpu"])


def warnings(pool: dict[str, Any], has: int) -> list[str]:
    settings = load({"pools": {"gpu": {"vmSku": H100, **pool}}})
    return list(removed_nodes(settings, {"pools": {"gpu": NAME}}, {NAME: has, "foreign": 4}))


@case_table(__file__, "removed", name=NAME)
def test_warns_of_removed_nodes_and_their_data(pool: dict[str, Any], has: int, message: str) -> None:
    (warning,) = warnings(pool, has)
    assert message in warning
    assert "the scratch folder, and files in containers" in warning
    assert warning.endswith(f"grep aks-{NAME}-")


def test_warns_of_a_pool_that_is_not_in_the_outputs_yet() -> None:
    assert len(list(removed_nodes(load(STACK), {}, {NAME: 3, "foreign": 4}))) == 1


@case_table(__file__, "silent")
def test_does_not_warn_if_no_node_is_removed(pool: dict[str, Any], has: int) -> None:
    assert warnings(pool, has) == []


@case_table(__file__, "bounds")
def test_warns_of_bounds_that_exclude_nodes_of_a_pool(has: int, *, autoscales: bool, expected: str) -> None:
    settings = load({"pools": {"gpu": {"vmSku": H100, "autoscale": {"min": 2, "max": 3}}}})
    name = agent_pool_name("gpu", settings.gpu_pools()["gpu"])
    pool = SimpleNamespace(name=name, count=has, enable_auto_scaling=autoscales)
    cluster: Any = SimpleNamespace(agent_pool_profiles=[pool])
    found = [text.partition("\n") for text in excluded_nodes(settings, cluster)]
    assert [first for first, _, _ in found] == ([f"pools.gpu.autoscale.{expected}"] if expected else [])
    assert all(f"--path pools.gpu.autoscale.{expected[:3]} {has}" in rest for _, _, rest in found)


SYSTEM: dict[str, Any] = {"name": "system", "count": 1, "vmSize": "Standard_D4s_v5"}
GPU: dict[str, Any] = {"name": "gpuba3d", "count": 3, "vmSize": "Standard_ND96isr_H100_v5", "maxPods": 250}
AS_REFRESHED = {**SYSTEM, "maxPods": 250, "enableFIPS": False}
STAY = "node pools gpuba3d stay as they are"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ([SYSTEM], [SYSTEM], []),
        ([SYSTEM], [SYSTEM | {"count": 2}], ["node pool system: count 1 -> 2"]),
        ([SYSTEM], [SYSTEM | {"count": 2.0}], ["node pool system: count 1 -> 2"]),
        ([SYSTEM], [SYSTEM | {"tags": rpc.UNKNOWN}], ["node pool system: tags unset -> known after the update"]),
        ([GPU, AS_REFRESHED], [SYSTEM | {"count": 2}], ["node pool system: count 1 -> 2", STAY]),
    ],
    ids=["the same", "scaled", "a float", "unknown", "scaled after a refresh"],
)  # fmt: skip
def test_reports_changed_pools_and_pools_that_stay(
    before: list[Any], after: list[Any], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", logged.append)

    def update() -> None:
        hook = report_pool_changes()
        assert hook.opts
        assert hook.opts.on_dry_run
        old, new = {PROFILES: before}, {PROFILES: after}
        hook(pulumi.ResourceHookArgs(urn="", id="", name="", type="", old_inputs=old, new_inputs=new))

    deploy(update)
    assert len(logged) == len(lines)
    assert all(found.startswith(line) for found, line in zip(logged, lines, strict=True))
