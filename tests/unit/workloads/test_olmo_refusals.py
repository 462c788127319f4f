from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from config.data.content_tags import IMAGES
from config.data.skus import catalogue, sku
from config.schema.pools import PoolSettings
from config.schema.storage import StorageSettings
from config.schema.translate import problems_of
from simulator.host.paths import ROOT
from tests.support.case_files import read
from tests.support.pools import A100, candidate
from tests.support.sizes import H100, H200
from workloads.olmo import configs
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import micro_batch
from workloads.olmo.options import DEFAULT_CONFIG, OlmoOptions
from workloads.olmo.problems import problems

CASES = read(__file__, "olmo_refusals")
CONTAINERS: dict[str, Any] = {
    "olmo-data": {"permissions": "rl", "profile": "random-4k", "upload": True},
    "olmo-checkpoints": {"permissions": "racwdlmp", "profile": "checkpoints"},
}
CHANGED = {"olmo-data": {}, "olmo-checkpoints": CONTAINERS["olmo-checkpoints"]}


def found(vm_sku: str = H100, nodes: int = 1, **case: Any) -> str:
    changed = {
        name: each if each is None else {**CHANGED[name], **each} for name, each in case.get("containers", {}).items()
    }
    containers = {name: each for name, each in {**CONTAINERS, **changed}.items() if each is not None}
    pool = PoolSettings.model_validate({"vmSku": vm_sku, **case.get("pool", {})})
    storage = StorageSettings.model_validate({"containers": containers, **case.get("storage", {})})
    path, scratch = tuple(case.get("path", ())), case.get("scratch", True)
    where = candidate(nodes=nodes, pool=pool, pool_path=path, storage=storage, scratch=scratch)
    return "\n".join(map(str, problems(OlmoOptions.model_validate(case.get("options", {})), where)))


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"config": "OLMo2-7"}, "config is 'OLMo2-7', not one of OLMo's training configs", "config OLMo2-7B"),
        ({"config": "GPT-4"}, "OLMo-1B, OLMo-7B, OLMo-7B-0424, OLMo-7B-0724, OLMo2-1B, OLMo2-7B, OLMo2-13B", "<value>"),
        ({"stopAt": 0}, "workloadOptions.olmo.stopAt is 0", "pulumi config set --path workloadOptions.olmo.stopAt 1"),
        ({"runName": "a/b"}, "at most 63 letters, digits", "workloadOptions.olmo.runName <value>"),
        ({"numNode": 2}, "numNode is an unknown key", "workloadOptions.olmo.numNodes 2"),
    ],
)
def test_errors_suggest_valid_options(options: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        OlmoOptions.model_validate(options, by_alias=True, by_name=False)
    (problem,) = problems_of(refusal.value.errors(), OlmoOptions, options, ("workloadOptions", "olmo"))
    assert what in str(problem)
    assert fix in problem.fix


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.get("what", "good")[:60])
def test_errors_of_stacks(case: dict[str, Any]) -> None:
    text = found(case.get("size", H100), **{key: value for key, value in case.items() if key != "size"})
    assert case.get("what", "") in text
    fixes = [line for line in text.splitlines() if line.strip().startswith("fix:")]
    assert any(case["fix"] in line for line in fixes) if "fix" in case else text == ""


def test_accepts_a_size_without_nvme_scratch() -> None:
    assert found(A100, scratch=False) == ""


@pytest.mark.parametrize("vm_sku", [H100, H200])
@pytest.mark.parametrize("config", [name for name in training_configs() if name != "OLMo2-13B"])
def test_all_configs_except_13b_fit_on_one_node(vm_sku: str, config: str) -> None:
    assert found(vm_sku, options={"config": config}) == ""


@pytest.mark.parametrize(
    ("config", "vm_sku", "nodes", "expected"),
    [
        ("OLMo-1B", H100, 1, 8),  # the config's own
        ("OLMo-1B", "Standard_ND96asr_v4", 1, 4),  # as many as 40 GB hold
        ("OLMo2-1B", H100, 32, 2),  # as many as 256 GPUs share
        ("OLMo2-13B", H100, 2, 1),
    ],
)
def test_micro_batches_are_the_largest_that_fit(config: str, vm_sku: str, nodes: int, expected: int) -> None:
    assert micro_batch(OlmoOptions(config=config), sku(vm_sku), nodes) == expected
    assert found(vm_sku, nodes, options={"config": config}) == ""


def test_the_image_has_the_commit_of_the_configs() -> None:
    commit = re.search(r"OLMO_COMMIT=(\w{40})", (IMAGES / "olmo" / "Dockerfile").read_text("utf-8"))
    assert commit
    assert commit[1] in Path(configs.__file__).with_suffix(".yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "billions"),
    [("OLMo-1B", 1.18), ("OLMo-7B", 6.89), ("OLMo2-1B", 1.48), ("OLMo2-7B", 7.30), ("OLMo2-13B", 13.7)],
)
def test_models_have_the_published_parameters(name: str, billions: float) -> None:
    config = training_configs()[name]
    assert config.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert config.flops_per_token > 6 * (config.parameters - config.looked_up)


def test_node_counts_must_share_the_batch() -> None:
    assert training_configs()["OLMo2-1B"].node_counts(8, 4) == [1, 2, 4, 8, 16]
    assert training_configs()["OLMo2-1B"].largest_micro_batch(32 * 8) == 2
    assert training_configs()["OLMo2-1B"].largest_micro_batch(3 * 8) is None


MEASURED = {256: 51_299, 64: 50_855}
"""Tokens/s of one H100, by sequences per step (docs/olmo.md)."""
EXCHANGED_BYTES = 2 + 4
"""Per parameter and micro-batch: FSDP gathers weights in bf16 and reduces gradients in float32."""


def seconds_of_arithmetic(sequences: int, length: int) -> float:
    """Returns a step's time for these sequences per GPU, on the measurements' line."""
    (most, fast), (least, slow) = MEASURED.items()
    longest, shortest = most * length / fast, least * length / slow
    return shortest + (sequences - least) * (longest - shortest) / (most - least)


def seconds_a_step(nodes: int) -> float:
    """Returns the derived time on these Standard_ND96isr_H100_v5."""
    training, sku = training_configs()[DEFAULT_CONFIG], catalogue()[H100]
    assert sku.nccl_busbw is not None
    gpus, bandwidth = nodes * sku.gpus, sku.nccl_busbw.healthy.at(nodes, sharp=False) * 1e9
    sequences = training.batch // gpus
    exchange = EXCHANGED_BYTES * training.parameters * (gpus - 1) / gpus / bandwidth
    exchanges = sequences / micro_batch(OlmoOptions(), sku, nodes)
    return seconds_of_arithmetic(sequences, training.sequence_length) + exchanges * exchange


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_document_derives_speeds_from_measurements(nodes: int) -> None:
    training, sku, seconds = training_configs()[DEFAULT_CONFIG], catalogue()[H100], seconds_a_step(nodes)
    gpus, rate = nodes * sku.gpus, training.batch * training.sequence_length / seconds
    mfu = rate * training.flops_per_token / gpus / (sku.gpu_bf16_tflops * 1e12)
    speed_up = seconds_a_step(1) / seconds
    columns = nodes, gpus, f"{round(rate, -3):,.0f}", f"{speed_up:.2f}", f"{seconds:.1f}", f"{mfu * 100:.1f} %"
    row = f"| {' | '.join(map(str, columns))} |"
    assert row in (ROOT / "docs" / "olmo.md").read_text("utf-8")


@pytest.mark.parametrize("sequences", MEASURED)
def test_the_document_has_the_mfu_of_measurements(sequences: int) -> None:
    training, sku, rate = training_configs()[DEFAULT_CONFIG], catalogue()[H100], MEASURED[sequences]
    mfu = rate * training.flops_per_token / (sku.gpu_bf16_tflops * 1e12)
    rows = [line for line in (ROOT / "docs" / "olmo.md").read_text("utf-8").splitlines() if "one H100" in line]
    assert any(f"| {sequences}" in row and f"| {rate:,} | {mfu * 100:.1f} % |" in row for row in rows)
