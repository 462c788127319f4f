"""The model sizes that Metaseq trains, from `models.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import yaml

from config.data.skus import Facts


class ModelSize(Facts):
    """One size: the shape of its decoder, and how it is trained."""

    name: str
    layers: int
    width: int
    """Decoder embedding dimension; that of the feed-forward layers is four times as much."""
    heads: int
    batch: int
    """Tokens of one update, over all GPUs."""
    learning_rate: float
    model_parallel: int
    """GPUs that share one copy of the model's layers."""


class Models(Facts):
    """The whole table, and what all of its sizes share."""

    sequence: int
    """Tokens of one sequence."""
    vocabulary: int
    training_tokens: float
    warmup_tokens: float
    sizes: Mapping[str, ModelSize]

    def parameters(self, size: ModelSize) -> int:
        """Parameters of the model: layers with their biases, one embedding that is also the output, positions."""
        width = size.width
        layers = size.layers * (12 * width**2 + 13 * width)
        return layers + (self.vocabulary + self.sequence + 2) * width

    def sequences(self, size: ModelSize) -> int:
        """Sequences of one update, over all GPUs."""
        return size.batch // self.sequence


@functools.cache
def models() -> Models:
    """The table."""
    facts = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text(encoding="utf-8"))
    sizes = {name: {"name": name, **size} for name, size in facts["sizes"].items()}
    return Models.model_validate({**facts, "sizes": sizes})
