"""The short configs in OLMo's simulated image are stand-ins for the repository's, and the program's facts agree."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from simulator.sandbox import sandbox
from simulator.sandbox.library import olmo_config
from workloads.olmo.configs import training_configs
from workloads.olmo.memory import state_bytes_per_gpu


@pytest.mark.parametrize("name", training_configs())
def test_configs_in_short_agree_with_the_facts(name: str) -> None:
    facts = training_configs()[name]
    path = Path(sandbox.__file__).parent / "files" / "olmo" / facts.path
    config = olmo_config.load(path, [])
    assert config.parameters == (
        facts.parameters,
        facts.parameters - config.number("model.embedding_size") * facts.width,
    )
    assert config.tokens_per_step == facts.batch * facts.sequence_length
    assert config.number("device_train_microbatch_size") == facts.micro_batch
    assert yaml.safe_load(path.read_text())["data"]["paths"] == list(config.data)
    assert config.max_steps > 0
    assert config.state_bytes == state_bytes_per_gpu(facts, gpus=1)
