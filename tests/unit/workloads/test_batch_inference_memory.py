"""Language models: their sizes, what they take of GPUs, and whose names are misspelt."""

from __future__ import annotations

from typing import Any

import pytest

from config.data.language_models import language_models, misspelt
from config.data.skus import sku
from tests.support.case_files import read, rows
from tests.support.pools import H100
from workloads.batch_inference import memory
from workloads.batch_inference.options import BatchInferenceOptions

CASES = read(__file__, "language_models")

GRANITE, LLAMA, QWEN = (
    "ibm-granite/granite-3.2-8b-instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
)


def options(**more: Any) -> BatchInferenceOptions:
    return BatchInferenceOptions.model_validate(more)


@pytest.mark.parametrize(("name", "parameters"), rows(CASES["parameters"]))
def test_shapes_have_the_parameters_that_are_published(name: str, parameters: int) -> None:
    """To the rounding of their cards: 8.1, 2.5, 8.0, 70.6, 7.6 and 72.7 billion; OPT's are in its paper's names."""
    assert language_models()[name].parameters == parameters


def test_keys_and_values_are_shared_by_gpus_as_far_as_there_are_heads() -> None:
    model = language_models()[QWEN]  # 4 heads with keys
    assert model.kv_bytes(1) == 2 * 2 * 28 * 4 * 128
    assert model.kv_bytes(4) == model.kv_bytes(1) // 4
    assert model.kv_bytes(28) == model.kv_bytes(4), "a head's are on several"


@pytest.mark.parametrize(("given", "size", "gpus", "fits"), rows(CASES["fits"]))
def test_what_fits(given: dict[str, Any], size: str, gpus: int, fits: bool) -> None:
    assert memory.fits(options(**given), sku(size), gpus) is fits


def test_so_many_prompts_as_there_is_room_for_fit_and_no_more() -> None:
    given = options(concurrency=10**6, prompts=10**6, inputLength=4000, outputLength=96)
    most = memory.most_at_once(given, sku(H100), 1)
    assert memory.fits(given.model_copy(update={"concurrency": most}), sku(H100), 1)
    assert not memory.fits(given.model_copy(update={"concurrency": most + 1}), sku(H100), 1)
    assert memory.most_at_once(options(model=LLAMA), sku(H100), 1) == 0


@pytest.mark.parametrize(("model", "gpus"), [(GRANITE, [1, 2, 4, 8]), (QWEN, [1, 2, 4]), (LLAMA, [1, 2, 4, 8])])
def test_gpus_that_can_share_a_model(model: str, gpus: list[int]) -> None:
    assert [count for count in range(1, 9) if memory.shares(options(model=model), count)] == gpus


@pytest.mark.parametrize(("name", "meant"), rows(CASES["slips"]))
def test_a_slip_is_seen(name: str, meant: str) -> None:
    assert misspelt(name)[:1] == [meant]


@pytest.mark.parametrize("name", CASES["others"])
def test_another_model_is_none(name: str) -> None:
    assert misspelt(name) == []
