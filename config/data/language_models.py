"""Language models by their names on huggingface.co: what they are made of, and how much memory that takes."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from typing import Literal

from config.data import data
from config.data.skus import Facts

BYTES = 2
"""Of a parameter, and of an entry of the KV cache: bf16."""
_TYPO = 0.95
"""How alike a name is to that of which it is a misspelling (difflib's ratio): a letter or two of forty."""


class LanguageModel(Facts):
    """A decoder of transformers: OPT, or one with grouped-query attention and SwiGLU."""

    type: Literal["granite", "llama", "opt", "qwen2"]
    layers: int
    width: int
    inner: int
    """Width of its feed-forward layers."""
    heads: int
    kv_heads: int
    head: int
    """Dimensions of a head."""
    vocabulary: int
    context: int
    """Most tokens of a prompt and its answer."""
    tied: bool = False
    """Whether the embedding is also the output."""
    targets: list[str] = []
    """Layers with LoRA, where peft has to be told."""
    gated: bool = False
    """Whether downloading it needs somebody's token."""

    @property
    def swiglu(self) -> bool:
        """Whether feed-forward layers multiply two projections, and not one by whether it is positive."""
        return self.type != "opt"

    @property
    def kv_width(self) -> int:
        """Of keys, and of values."""
        return self.kv_heads * self.head

    @property
    def parameters(self) -> int:
        """Of all of it. OPT has biases, norms of two vectors, and positions, two more than its context."""
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
        """Of all of it."""
        return BYTES * self.parameters

    def kv_bytes(self, gpus: int) -> int:
        """Of one token, on each of `gpus` that share the model: keys and values of its heads, of one at least."""
        return 2 * BYTES * self.layers * max(1, self.kv_heads // gpus) * self.head


@functools.cache
def language_models() -> Mapping[str, LanguageModel]:
    """All that are known."""
    return {name: LanguageModel.model_validate(facts) for name, facts in data.read("language_models.yaml").items()}


def misspelt(name: str) -> list[str]:
    """Known models that one is plainly meant for; none for one with other numbers, which is another of its family."""
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
