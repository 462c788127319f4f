"""What the program knows of OLMo's training configs, and of which commit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.data.content_tags import IMAGES
from config.data.skus import catalogue
from simulator.host.paths import ROOT
from tests.support.pools import H100
from workloads.olmo import configs
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import DEFAULT_CONFIG, OlmoOptions


def test_the_image_has_the_commit_that_the_configs_were_read_at() -> None:
    commit = re.search(r"OLMO_COMMIT=(\w{40})", (IMAGES / "olmo" / "Dockerfile").read_text("utf-8"))
    assert commit
    assert commit[1] in Path(configs.__file__).with_suffix(".yaml").read_text("utf-8")


def test_every_config_trains_on_one_node_of_eight_gpus() -> None:
    for config in training_configs().values():
        assert config.fits(8, config.micro_batch), config.name


@pytest.mark.parametrize(
    ("name", "billions"),
    [("OLMo-1B", 1.18), ("OLMo-7B", 6.89), ("OLMo2-1B", 1.48), ("OLMo2-7B", 7.30), ("OLMo2-13B", 13.7)],
)
def test_parameters_are_those_of_the_models(name: str, billions: float) -> None:
    config = training_configs()[name]
    assert config.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert config.flops_per_token > 6 * (config.parameters - config.looked_up)


def test_the_batch_tells_which_node_counts_share_it() -> None:
    assert training_configs()["OLMo2-1B"].node_counts(8, 4) == [1, 2, 4, 8, 16]
    assert training_configs()["OLMo2-1B"].largest_micro_batch(32 * 8) == 2
    assert training_configs()["OLMo2-1B"].largest_micro_batch(3 * 8) is None


MEASURED = {256: 51_299, 64: 50_855}
"""Tokens/s of one H100, by sequences a step: the rows of docs/olmo.md."""
EXCHANGED_BYTES = 2 + 4
"""Per parameter and micro-batch: FSDP gathers weights in bf16 and reduces gradients in float32."""


def seconds_of_arithmetic(sequences: int, length: int) -> float:
    """Of a step in which a GPU has so many sequences: the line through both measurements."""
    (most, fast), (least, slow) = MEASURED.items()
    longest, shortest = most * length / fast, least * length / slow
    return shortest + (sequences - least) * (longest - shortest) / (most - least)


def seconds_a_step(nodes: int) -> float:
    """Returns the derived time on so many Standard_ND96isr_H100_v5."""
    training, sku = training_configs()[DEFAULT_CONFIG], catalogue()[H100]
    assert sku.nccl_busbw is not None
    gpus, bandwidth = nodes * sku.gpus, sku.nccl_busbw.healthy.at(nodes, sharp=False) * 1e9
    sequences = training.batch // gpus
    exchange = EXCHANGED_BYTES * training.parameters * (gpus - 1) / gpus / bandwidth
    exchanges = sequences / micro_batch(OlmoOptions(), sku, nodes)
    return seconds_of_arithmetic(sequences, training.sequence_length) + exchanges * exchange


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_table_of_derived_speeds_follows_from_the_measured_ones(nodes: int) -> None:
    training, sku, seconds = training_configs()[DEFAULT_CONFIG], catalogue()[H100], seconds_a_step(nodes)
    gpus, rate = nodes * sku.gpus, training.batch * training.sequence_length / seconds
    mfu = rate * training.flops_per_token / gpus / (sku.gpu_bf16_tflops * 1e12)
    speed_up = seconds_a_step(1) / seconds
    columns = nodes, gpus, f"{round(rate, -3):,.0f}", f"{speed_up:.2f}", f"{seconds:.1f}", f"{mfu * 100:.1f} %"
    row = f"| {' | '.join(map(str, columns))} |"
    assert row in (ROOT / "docs" / "olmo.md").read_text("utf-8")


@pytest.mark.parametrize("sequences", MEASURED)
def test_the_measured_rows_have_their_mfu(sequences: int) -> None:
    training, sku, rate = training_configs()[DEFAULT_CONFIG], catalogue()[H100], MEASURED[sequences]
    mfu = rate * training.flops_per_token / (sku.gpu_bf16_tflops * 1e12)
    rows = [line for line in (ROOT / "docs" / "olmo.md").read_text("utf-8").splitlines() if "one H100" in line]
    assert any(f"| {sequences}" in row and f"| {rate:,} | {mfu * 100:.1f} % |" in row for row in rows)
