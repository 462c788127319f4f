"""What is known of models on Hugging Face's hub, from `models.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml

from config.facts.skus import Facts


class KnownModel(Facts):
    """One model; models.yaml says what its keys mean."""

    type: Literal["granite", "llama", "opt"]
    parameters: int
    layers: int
    width: int
    key_value_width: int
    feed_forward: int
    vocabulary: int
    context: int
    targets: list[str] = []
    gated: bool = False

    @property
    def gated_units(self) -> bool:
        """Whether its feed-forward layers multiply two projections (SwiGLU), and not one by whether it is positive."""
        return self.type != "opt"


@functools.cache
def models() -> Mapping[str, KnownModel]:
    """By name."""
    facts = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
    return {name: KnownModel.model_validate(found) for name, found in facts.items()}
