"""Language models by their names on huggingface.co: architecture and memory needs."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Literal

from config.data import data
from config.data.skus import Facts

BYTES = 2
"""Bytes per parameter, and per entry of the KV cache (bf16)."""
_TYPO = 0.95
"""The minimum similarity (difflib's ratio) of a misspelt name: one or two wrong letters in forty."""


class LanguageModel(Facts):
    """A decoder-only model of the transformers library: OPT, or a model with grouped-query attention and SwiGLU."""

    type: Literal["granite", "llama", "opt", "qwen2"]
    layers: int
    width: int
    inner: int
    """Width of the feed-forward layers."""
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    context: int
    """The maximum number of tokens in prompt and answer together."""
    tied: bool = False
    """Whether the embedding is also the output layer."""
    targets: list[str] = []
    """The layers that LoRA adapts, if peft has no default for the model."""
    gated: bool = False

    @property
    def swiglu(self) -> bool:
        """Whether feed-forward layers use SwiGLU (which multiplies two projections) instead of ReLU."""
        return self.type != "opt"

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head

    @property
    def parameters(self) -> int:
        """The number of parameters. OPT has biases, norms with two vectors, and two more positions than its context."""
        projected = self.head * self.heads + 2 * self.kv_width
        attention = self.width * (projected + self.head * self.heads)
        embedded = self.vocabulary * self.width * (1 if self.tied else 2)
        if not self.swiglu:
            layer = attention + 2 * self.width * self.inner + 9 * self.width + self.inner
            return self.layers * layer + 2 * self.width + embedded + (self.context + 2) * self.width
        biases = projected if self.type == "qwen2" else 0
        layer = attention + biases + 3 * self.width * self.inner + 2 * self.width
        return self.layers * layer + self.width + embedded

    @property
    def weight_bytes(self) -> int:
        return BYTES * self.parameters

    def kv_bytes(self, gpus: int) -> int:
        """Returns the bytes per token of the KV cache on each GPU, if `gpus` GPUs share the heads. Each GPU has at
        least one head.
        """
        return 2 * BYTES * self.layers * max(1, self.kv_heads // gpus) * self.head


@functools.cache
def language_models() -> Mapping[str, LanguageModel]:
    return {name: LanguageModel.model_validate(facts) for name, facts in data.read("language_models.yaml").items()}


def misspelt(name: str) -> list[str]:
    """Returns the known models that a name clearly misspells. A name with other numbers means another model."""
    known = language_models()
    if name in known:
        return []
    short = {each.partition("/")[2].lower(): each for each in known}
    if name.lower() in short:
        return [short[name.lower()]]
    alike = [each for each in known if _numbers(each) == _numbers(name) and _ratio(each, name) >= _TYPO]
    return sorted(alike, key=lambda each: -_ratio(each, name))


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
