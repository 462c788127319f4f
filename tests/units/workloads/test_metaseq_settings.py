"""What users are told about a model size that cannot be trained as they ask, at the key that they have set."""

from __future__ import annotations

from typing import Any

import pytest

from config.problems.errors import SettingsError
from tests.support.pools import A100, H100
from tests.support.settings import load
from workloads import find

NODES = "pulumi config set --path workloadOptions.metaseq.numNodes 2"


def told(**stack: Any) -> tuple[str, str, str]:
    """What, what is allowed, and the fix, of the one problem that a stack has."""
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "workloads": "metaseq", **stack}, known=find())
    (problem,) = caught.value.problems
    return str(problem).partition("\n")[0], problem.allowed, problem.fix


def test_an_unknown_size() -> None:
    what, allowed, fix = told(modelSize="6b")
    assert what == "modelSize is '6b', an unknown model size; near: 66b, 6.7b"
    assert allowed == "125m, 350m, 760m, 1.3b, 2.7b, 6.7b, 13b, 30b, 66b, 175b"
    assert fix == "pulumi config set modelSize 6.7b", "66b does not fit"


def test_an_unknown_size_among_the_options() -> None:
    what, _, fix = told(workloadOptions={"metaseq": {"modelSize": "6.7B"}})
    assert what == "workloadOptions.metaseq.modelSize is '6.7B', an unknown model size; near: 6.7b, 2.7b"
    assert fix == "pulumi config set --path workloadOptions.metaseq.modelSize 6.7b"


def test_a_model_too_big_for_one_node_gets_another() -> None:
    what, _, fix = told(modelSize="66b")
    assert what.startswith(f"modelSize is 66b, which needs 2 nodes of {H100}: with 1, each GPU would need 103 GB")
    assert fix == NODES


def test_a_model_too_big_for_the_pool() -> None:
    what, allowed, fix = told(modelSize="175b", workloadOptions={"metaseq": {"numNodes": 2}})
    assert what.startswith(f"modelSize is 175b, which needs 8 nodes of {H100}")
    assert allowed.endswith("175b with numNodes 8, 16, 32, 64, 128, 256, 512")
    assert fix == "pulumi config set modelSize 66b"


def test_a_model_too_big_for_smaller_gpus() -> None:
    what, _, fix = told(vmSku=A100, modelSize="30b")
    assert what.endswith("and 36 of its 40 GB can be used")
    assert fix == NODES


def test_a_batch_that_more_nodes_than_the_pool_has_cannot_share_needs_no_more_nodes() -> None:
    what, _, fix = told(nodeCount=2, modelSize="1.3b", workloadOptions={"metaseq": {"numNodes": 5}})
    assert what == "modelSize is 1.3b, which has batches of 512 sequences, which 5 nodes cannot share equally"
    assert fix == NODES


def test_a_batch_that_three_nodes_cannot_share() -> None:
    what, allowed, fix = told(nodeCount=3, modelSize="6.7b", workloadOptions={"metaseq": {"numNodes": 3}})
    assert what == "modelSize is 6.7b, which has batches of 1024 sequences, which 3 nodes cannot share equally"
    assert allowed == "6.7b with numNodes 1, 2, 4, 8, 16, 32, 64, 128, 256"
    assert fix == NODES


def test_three_nodes_of_a_pool_are_no_matter_of_the_training() -> None:
    """Scaling the pool is free: `numNodes` does not follow it."""
    placed = load({"vmSku": H100, "workloads": "metaseq", "nodeCount": 3, "modelSize": "6.7b"}, known=find())
    assert placed.placements["metaseq"].nodes == 1


def test_no_updates_at_all() -> None:
    what, allowed, _ = told(workloadOptions={"metaseq": {"numUpdates": 0}})
    assert (what, allowed) == ("workloadOptions.metaseq.numUpdates is 0", "a whole number of 1 or more")
