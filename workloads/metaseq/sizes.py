"""The model sizes that Metaseq trains, from `models.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import yaml

from config.data.skus import Facts


class ModelSize(Facts):
    """One model size: its decoder's shape and its training parameters."""

    name: str
    layers: int
    width: int
    """The decoder's embedding dimension; feed-forward layers are four times as wide."""
    heads: int
    batch: int
    """Tokens in one update, over all GPUs."""
    learning_rate: float
    model_parallel: int
    """GPUs that share one copy of the model's layers."""


class Models(Facts):
    """The table of sizes, with common values."""

    sequence: int
    vocabulary: int
    training_tokens: float
    warmup_tokens: float
    sizes: Mapping[str, ModelSize]

    def parameters(self, size: ModelSize) -> int:
        """Returns the model's parameters: layers with biases, one embedding that is also the output, and positions."""
        width = size.width
        layers = size.layers * (12 * width**2 + 13 * width)
        return layers + (self.vocabulary + self.sequence + 2) * width

    def sequences(self, size: ModelSize) -> int:
        return size.batch // self.sequence


@functools.cache
def models() -> Models:
    facts = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
    sizes = {name: {"name": name, **size} for name, size in facts["sizes"].items()}
    return Models.model_validate({**facts, "sizes": sizes})
