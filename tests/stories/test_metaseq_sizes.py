"""The ten model sizes of Metaseq, as a real preview would train them: the table's numbers, or a refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from k8s.objects import Object
from simulator.host import paths
from tests.support.world import Stack

pytestmark = [pytest.mark.simulator, pytest.mark.long]
TABLE = yaml.safe_load((paths.ROOT / "workloads" / "metaseq" / "models.yaml").read_text())
NODES = {"66b": 2, "175b": 8}
"""Fewest nodes of 8 H100 that have the memory; one for all others."""
GPUS = 8
MICRO_BATCH = {
    "125m": 64, "350m": 32, "760m": 32, "1.3b": 32, "2.7b": 32, "6.7b": 16, "13b": 8, "30b": 2, "66b": 4, "175b": 4,
}  # fmt: skip
"""Sequences that a model-parallel group takes at once: what fits into 72 GB (test_metaseq_plan.py)."""


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    """Never brought up: a preview needs no cluster."""
    return new_stack("sizes", workloads="metaseq")


def choose(stack: Stack, size: str, nodes: int) -> None:
    stack.set(modelSize=size, nodeCount=str(nodes), workloadOptions={"metaseq": {"numNodes": nodes}})


def planned(stack: Stack) -> dict[str, Object]:
    """Inputs of all that a preview would make, by `<type> <name>`."""
    return {name: step["newState"].get("inputs", {}) for name, step in stack.planned().items()}


def options(text: str) -> dict[str, str]:
    """Values by option, of a command line with one word per line; empty ones of options that take none."""
    words = text.splitlines()
    following = [*words[1:], ""]
    pairs = zip(words, following, strict=True)
    return {word: "" if value.startswith("--") else value for word, value in pairs if word.startswith("--")}


@pytest.mark.parametrize("size", TABLE["sizes"])
def test_the_training_command_has_the_numbers_of_the_table(stack: Stack, size: str) -> None:
    row, nodes = TABLE["sizes"][size], NODES.get(size, 1)
    choose(stack, size, nodes)
    made = planned(stack)
    given = options(made["kubernetes:core/v1:ConfigMap metaseq"]["data"]["arguments"])
    copies = nodes * GPUS / row["model_parallel"]
    expected = {
        "--decoder-layers": row["layers"],
        "--decoder-embed-dim": row["width"],
        "--decoder-ffn-embed-dim": 4 * row["width"],
        "--decoder-attention-heads": row["heads"],
        "--model-parallel-size": row["model_parallel"],
        "--tokens-per-sample": TABLE["sequence"],
        "--batch-size": MICRO_BATCH[size],
        "--update-freq": row["batch"] / TABLE["sequence"] / copies / MICRO_BATCH[size],
        "--lr": row["learning_rate"],
        "--end-learning-rate": row["learning_rate"] / 10,
        "--warmup-updates": TABLE["warmup_tokens"] // row["batch"],
        "--total-num-update": TABLE["training_tokens"] // row["batch"],
        "--max-update": TABLE["training_tokens"] // row["batch"],
    }
    assert {name: float(given[name]) for name in expected} == pytest.approx(expected)
    assert given["--task"] == "dummy_lm"
    assert "--sequence-parallel" in given
    assert "--checkpoint-activations" not in given
    workers = made["kubernetes:batch.volcano.sh/v1alpha1:Job metaseq"]["spec"]["tasks"][1]
    assert workers["replicas"] == nodes


@pytest.mark.parametrize(("size", "nodes", "needed"), [("66b", 1, 2), ("175b", 2, 8), ("175b", 4, 8)])
def test_a_size_on_too_few_nodes_is_refused_with_the_number_that_it_needs(
    stack: Stack, size: str, nodes: int, needed: int
) -> None:
    choose(stack, size, nodes)
    text = stack.pulumi("preview", check=False)
    assert stack.returncode != 0
    assert f"modelSize is {size}, which needs {needed} nodes of Standard_ND96isr_H100_v5: with {nodes}, each" in text
    assert f"{size} with numNodes {needed}, " in text
    assert "fix:     pulumi config set -s sizes " in text
    assert "Traceback" not in text
