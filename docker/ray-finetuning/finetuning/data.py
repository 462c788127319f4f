"""Training data: files of JSON lines, or a source with known entropy, packed into rows of one length.

Packed rows have little padding. The model is compiled only once, because all rows have the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from finetuning import lines
from finetuning.lines import DataError

IGNORED = -100
"""The target of an untrained token, as in transformers."""
_SYMBOLS, _CHOICES, _STRIDE = 256, 4, 17


@dataclass(frozen=True)
class Example:
    """A sequence of token numbers. Tokens before `first` (at least 1) are the prompt, and are not trained on."""

    tokens: np.ndarray
    first: int = 1

    @property
    def learnt(self) -> int:
        """The number of tokens that are trained on."""
        return len(self.tokens) - self.first


def synthetic(vocabulary: int, seed: int, count: int, lengths: tuple[int, int]) -> list[Example]:
    """Returns examples in which each token has four equally likely successors, so no loss stays below ln 4.

    Lengths are distributed uniformly from the first to the second of `lengths`.
    """
    chance = np.random.default_rng(seed)
    names = chance.permutation(vocabulary)[:_SYMBOLS]
    found = []
    for length in chance.integers(*lengths, count, endpoint=True):
        steps = chance.integers(_CHOICES, size=length) * _STRIDE + 1
        found.append(Example(names[steps.cumsum() % len(names)]))
    return found


def read(path: Path, tokenizer: Any, vocabulary: int, longest: int) -> tuple[list[Example], int]:
    """Returns the examples in a file or in a folder's *.jsonl, cut to `longest` tokens. Raises DataError.

    Also returns how many examples were cut.
    """
    examples = lines.read(path, lambda prompt, text: _example(prompt, text, tokenizer))
    if (most := max(int(each.tokens.max()) for each in examples)) >= vocabulary:
        raise DataError(f"token {most} is not in the model's vocabulary of {vocabulary}: the tokenizer does not fit")
    cut = sum(len(each.tokens) > longest for each in examples)
    kept = [Example(each.tokens[:longest], each.first) for each in examples if each.first < longest]
    if not kept:
        raise DataError(f"every prompt of {path} has {longest} tokens or more, so no completion is left")
    return kept, cut


def _example(prompt: str | None, text: str, tokenizer: Any) -> Example:
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    before = [] if prompt is None else tokenizer(prompt).input_ids
    tokens = before + tokenizer(text, add_special_tokens=prompt is None).input_ids + end
    first = max(1, len(before))
    if len(tokens) <= first:
        raise DataError("no token to learn")
    return Example(np.array(tokens), first)


@dataclass(frozen=True)
class Row:
    """Consecutive examples, then padding. `tokens` and `positions` have the shape (1, size).

    `ends` has 0 and the ends of sequences, as int32. `targets` (n,) has the tokens that are trained on, padded with
    IGNORED to a multiple of `unit`. `learnt` (n,) has the positions before these tokens.
    """

    tokens: Tensor
    positions: Tensor
    ends: Tensor
    learnt: Tensor
    targets: Tensor

    @classmethod
    def of(cls, examples: Sequence[Example], size: int, longest: int, unit: int, device: torch.device) -> Row:
        tokens, positions, targets = np.zeros(size, int), np.zeros(size, int), np.full(size, IGNORED)
        ends = [0]
        for each in examples:
            start, stop = ends[-1], ends[-1] + len(each.tokens)
            tokens[start:stop], positions[start:stop] = each.tokens, np.arange(stop - start)
            targets[start + each.first - 1 : stop - 1] = each.tokens[each.first :]
            ends.append(stop)
        while ends[-1] < size:  # splits the padding into sequences of the maximum length
            ends.append(min(size, ends[-1] + longest))
        learnt = np.flatnonzero(targets != IGNORED)
        missing = -len(learnt) % unit
        chosen = np.concatenate([targets[learnt], np.full(missing, IGNORED)])
        learnt = np.concatenate([learnt, np.zeros(missing, int)])
        arrays = (tokens[None], positions[None], np.array(ends, np.int32), learnt, chosen)
        return cls(*(_moved(torch.from_numpy(each), device) for each in arrays))


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
