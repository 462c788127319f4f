"""What the program knows of OLMo's training configs, and of which commit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.data.content_tags import IMAGES
from workloads.olmo import configs
from workloads.olmo.configs import training_configs


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
