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


@pytest.mark.parametrize(
    ("pool", "has", "says"),
    [
        ({"count": 1}, 3, f"removes 2 of 3 nodes of pool gpu ({NAME}), since pools.gpu.count is 1"),
        ({}, 5, "is 2. To keep them: pulumi config set -s dev --path pools.gpu.count 5\n"),
        ({"vmSku": "Standard_ND96asr_v4", "count": 2}, 2, f"removes 2 of 2 nodes of pool gpu ({NAME}). Their pods end"),
    ],
    ids=["fewer", "autoscale is gone", "another VM size"],
)
def test_removed_nodes_are_reported_with_what_is_deleted(pool: dict[str, Any], has: int, says: str) -> None:
    (warning,) = warnings(pool, has)
    assert says in warning
    assert "in the scratch folder" in warning
    assert warning.endswith(f"grep aks-{NAME}-")


def test_a_pool_that_no_output_names_yet_is_looked_at_too() -> None:
    assert len(list(removed_nodes(load(STACK), {}, {NAME: 3, "foreign": 4}))) == 1


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
