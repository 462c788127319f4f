"""An update warns of bounds of the autoscaler that exclude the nodes which a pool has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from components.existing_cluster import excluded_nodes
from config.schema.pools import agent_pool_name
from tests.support.settings import H100, load


@pytest.mark.parametrize(
    ("has", "autoscales", "expected"),
    [
        (5, True, "max is 3, but the pool has 5 nodes: this update removes none, and none is added"),
        (5, False, "max is 3, but the pool has 5 nodes: AKS may refuse bounds that exclude them"),
        (1, False, "min is 2, but the pool has 1 nodes: AKS may refuse bounds that exclude them"),
        (1, True, ""),
        (3, True, ""),
    ],
)
def test_bounds_that_exclude_the_nodes_of_a_pool_are_reported(has: int, *, autoscales: bool, expected: str) -> None:
    settings = load({"pools": {"gpu": {"vmSku": H100, "autoscale": {"min": 2, "max": 3}}}})
    name = agent_pool_name("gpu", settings.gpu_pools()["gpu"])
    pool = SimpleNamespace(name=name, count=has, enable_auto_scaling=autoscales)
    cluster: Any = SimpleNamespace(agent_pool_profiles=[pool])
    found = [text.partition("\n") for text in excluded_nodes(settings, cluster)]
    assert [first for first, _, _ in found] == ([f"pools.gpu.autoscale.{expected}"] if expected else [])
    assert all(f"--path pools.gpu.autoscale.{expected[:3]} {has}" in rest for _, _, rest in found)
