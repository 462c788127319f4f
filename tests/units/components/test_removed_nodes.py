"""An update that removes GPU nodes says so, with what is deleted with them and what shows the pods there."""

from __future__ import annotations

from typing import Any

import pytest

from components.existing_cluster import removed_nodes
from config.schema.pools import agent_pool_name
from tests.support.pools import H100
from tests.support.settings import load

STACK: dict[str, Any] = {"pools": {"gpu": {"vmSku": H100, "count": 1}}}
NAME = agent_pool_name("gpu", load(STACK).gpu_pools()["gpu"])


def warnings(pool: dict[str, Any], has: int) -> list[str]:
    settings = load({"pools": {"gpu": {"vmSku": H100, **pool}}})
    return list(removed_nodes(settings, {"pools": {"gpu": NAME}}, {NAME: has, "foreign": 4}))


def test_a_smaller_number_of_nodes_is_reported_with_what_is_deleted() -> None:
    (warning,) = warnings({"count": 1}, 3)
    assert f"removes 2 of 3 nodes of pool gpu ({NAME})" in warning
    assert "scratch folder" in warning
    assert f"grep aks-{NAME}-" in warning


def test_nodes_go_with_autoscale_where_the_default_count_is_lower() -> None:
    (warning,) = warnings({}, 5)
    assert "removes 3 of 5 nodes" in warning
    assert "since pools.gpu.count is 2. To keep them: pulumi config set -s dev --path pools.gpu.count 5\n" in warning


def test_a_pool_that_no_output_names_yet_is_looked_at_too() -> None:
    settings = load(STACK)
    assert len(list(removed_nodes(settings, {}, {NAME: 3, "foreign": 4}))) == 1


def test_all_nodes_go_with_another_vm_size() -> None:
    (warning,) = warnings({"vmSku": "Standard_ND96asr_v4", "count": 2}, 2)
    assert f"removes 2 of 2 nodes of pool gpu ({NAME})" in warning


@pytest.mark.parametrize(
    ("pool", "has"),
    [
        ({"count": 2}, 2),
        ({"count": 3}, 2),
        ({"autoscale": {"min": 1, "max": 4}}, 3),
        ({"autoscale": {"min": 1, "max": 2}}, 3),
        ({"count": 0}, 0),
    ],
)
def test_an_update_that_removes_no_node_is_silent(pool: dict[str, Any], has: int) -> None:
    assert warnings(pool, has) == []


def test_a_first_update_removes_nothing() -> None:
    assert list(removed_nodes(load(STACK), {}, {})) == []
