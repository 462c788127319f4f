"""The derived speed of OLMo-1B in docs/olmo.md: its numbers follow from published measurements and the config."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from config.facts.skus import catalogue
from simulator.host.paths import ROOT
from tests.support.pools import H100
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import DEFAULT_CONFIG, OlmoOptions

MEASURED_MFU = {1: 0.4182, 2: 0.4236, 4: 0.4152}
"""MFU of a 1.3B model on 8, 16 and 32 H100, by nodes (mosaicml/llm-foundry, scripts/train/benchmarking/README.md)."""
EXCHANGED_BYTES = 2 + 4
"""Per parameter and micro-batch: FSDP gathers weights in bf16 and reduces gradients in float32."""


@dataclass(frozen=True)
class Speed:
    """Tokens/s of all GPUs."""

    hidden: float
    """If the exchange overlaps with arithmetic."""
    exposed: float
    """If none of it does."""


def speed(nodes: int) -> Speed:
    """Returns the derived speed on so many Standard_ND96isr_H100_v5."""
    training, sku = training_configs()[DEFAULT_CONFIG], catalogue()[H100]
    assert sku.nccl_busbw is not None
    gpus, bandwidth = nodes * sku.gpus, sku.nccl_busbw.healthy.at(nodes, sharp=False) * 1e9
    hidden = gpus * sku.gpu_bf16_tflops * 1e12 * MEASURED_MFU[nodes] / training.flops_per_token
    tokens = gpus * micro_batch(OlmoOptions(), sku, nodes) * training.sequence_length
    exchange = EXCHANGED_BYTES * training.parameters * (gpus - 1) / gpus / bandwidth
    return Speed(hidden, tokens / (tokens / hidden + exchange))


@pytest.mark.parametrize("nodes", MEASURED_MFU)
def test_the_table_of_derived_speeds_follows_from_its_sources(nodes: int) -> None:
    training, found = training_configs()[DEFAULT_CONFIG], speed(nodes)
    step = training.batch * training.sequence_length
    numbers = [
        *(f"{round(each, -3):,.0f}" for each in (found.exposed, found.hidden)),
        f"{found.exposed / speed(1).exposed:.2f}",
        f"{step / found.hidden:.1f} to {step / found.exposed:.1f}",
    ]
    row = f"| {nodes} | {8 * nodes} | {MEASURED_MFU[nodes] * 100:.2f} % | {' | '.join(numbers)} |"
    assert row in (ROOT / "docs" / "olmo.md").read_text("utf-8")
