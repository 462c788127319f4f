"""Training data: a source with known entropy, or files of token numbers.

A batch depends only on its number. So a restarted training reads the same data on any number of GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pretraining import token_files
from pretraining.token_files import DataError

_SYMBOLS, _CHOICES, _STRIDE = 256, 4, 17


class Source(Protocol):
    """A source of sequences."""

    def sequences(self, numbers: Sequence[int], length: int) -> Tensor:
        """Returns the sequences with these numbers, as (len(numbers), length + 1) tokens on the CPU or a GPU."""


@dataclass(frozen=True)
class Synthetic:
    """A source with 256 tokens. Each token has four equally likely successors, so no loss stays below `entropy`."""

    vocabulary: int
    seed: int
    device: torch.device

    @property
    def entropy(self) -> float:
        """The entropy in nats per token."""
        return math.log(_CHOICES)

    def sequences(self, numbers: Sequence[int], length: int) -> Tensor:
        spread = torch.Generator(self.device).manual_seed(self.seed)
        names = torch.randperm(self.vocabulary, generator=spread, device=self.device)[:_SYMBOLS]
        rows = []
        for number in numbers:
            chance = torch.Generator(self.device).manual_seed(self.seed * 1_000_003 + number + 1)
            steps = torch.randint(_CHOICES, (length + 1,), generator=chance, device=self.device) * _STRIDE + 1
            rows.append(names[steps.cumsum(0) % _SYMBOLS])
        return torch.stack(rows)


class TokenFiles:
    """The files `*.bin` in a folder: little-endian token numbers with 16 bits, or 32 if the vocabulary needs them.

    Sequences follow each other without gaps. Each pass over the data has another order.
    """

    def __init__(self, folder: Path, vocabulary: int, seed: int) -> None:
        """Opens the files. Raises DataError."""
        self.vocabulary, self.seed = vocabulary, seed
        size = token_files.bytes_of_token(vocabulary)
        self._files = [np.memmap(file, f"<u{size}", "r") for file in token_files.found(folder, size, vocabulary)]
        self._ends = np.cumsum([len(each) for each in self._files])
        self._shuffled, self._places = (-1, 0), np.empty(0, int)

    def sequences(self, numbers: Sequence[int], length: int) -> Tensor:
        """Returns sequences. Raises DataError for tokens outside the vocabulary, or too few tokens for a sequence."""
        count = (int(self._ends[-1]) - 1) // length
        if count < 1:
            raise DataError(f"the files have {self._ends[-1]} tokens, but a sequence has {length + 1}")
        rows = [
            self._read(self._order(number // count, count)[number % count] * length, length + 1) for number in numbers
        ]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    def _order(self, round_: int, count: int) -> np.ndarray:
        if self._shuffled != (round_, count):
            self._shuffled = (round_, count)
            self._places = np.random.default_rng([self.seed, round_]).permutation(count)
        return self._places

    def _read(self, start: int, length: int) -> np.ndarray:
        first = int(np.searchsorted(self._ends, start, side="right"))
        parts = []
        while length > 0:
            offset = start - (int(self._ends[first - 1]) if first else 0)
            part = self._files[first][offset : offset + length]
            if len(part) and int(part.max()) >= self.vocabulary:
                raise token_files.foreign(self._files[first].filename, offset, part.tolist(), self.vocabulary)
            parts.append(part)
            start, length, first = start + len(part), length - len(part), first + 1
        return np.concatenate(parts)
