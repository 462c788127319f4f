"""Saves checkpoints. While training continues, each process writes its share of fp32 weights (masters) and moments.

A share lists which elements it contains. So any number of processes, sharded or not, can read it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from pretraining import folders
from pretraining.optimizer import Segments, world

_WHERE = "where"
"""The name of files that list a share's segments: the number of the first element, and the length."""


class Optimizer(Protocol):
    """The state that a checkpoint saves."""

    steps: int

    def state(self) -> Mapping[str, Segments]: ...

    def restore(self, steps: int) -> None: ...


class Checkpoints:
    """A training's checkpoints, in a folder that all processes share."""

    def __init__(self, folder: Path, about: Mapping[str, Any], keep: int = 2) -> None:
        """`about` describes the training. Only checkpoints with the same `about` can be loaded."""
        self.folder, self.about, self.keep = folder, dict(about), keep
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None

    def save(self, optimizer: Optimizer) -> None:
        """Copies the state. A thread then writes the copy. If the previous write failed, raises its error."""
        self.wait()
        state = optimizer.state()
        copied = {name: _joined(segments) for name, segments in state.items()}
        where = [(start, part.numel()) for start, part in state["masters"]]
        self._writer = threading.Thread(target=self._write, args=(copied, where, optimizer.steps))
        self._writer.start()

    def wait(self) -> None:
        """Waits for the write. If it failed, raises its error."""
        if self._writer:
            self._writer.join()
            self._writer = None
        if self._failure:
            raise self._failure

    def _write(self, state: Mapping[str, Tensor], where: Sequence[tuple[int, int]], steps: int) -> None:
        try:
            rank, processes = world()
            part = folders.begin(self.folder, steps)
            for name, tensor in state.items():
                np.save(part / f"{name}-{rank}.npy", tensor.numpy())
            (part / f"{_WHERE}-{rank}.json").write_text(json.dumps(where))
            folders.written(part, rank).touch()
            if rank == 0:
                folders.finish(part, processes, {**self.about, "steps": steps}, self.keep)
        except BaseException as error:  # noqa: BLE001 - the next save raises it, or the end
            self._failure = error

    def load(self, optimizer: Optimizer) -> int:
        """Restores the newest checkpoint, and returns its steps, or 0 without one. Raises CheckpointError."""
        if world()[0] == 0:
            folders.clear(self.folder)  # safe: all processes take a step together before any saves
        found = folders.newest(self.folder, self.about)
        if found is None:
            return 0
        state = optimizer.state()
        for file in found[0].glob(f"{_WHERE}-*.json"):
            where = json.loads(file.read_text())
            for name, segments in state.items():
                share = np.load(file.with_name(f"{name}-{file.stem.rpartition('-')[2]}.npy"), mmap_mode="r")
                for start, into in segments:
                    _read(share, where, into, start)
        optimizer.restore(found[1])
        return optimizer.steps


def _joined(segments: Segments) -> Tensor:
    """Returns a copy of all segments on the CPU, because the GPU may lack memory for it."""
    into = torch.empty(sum(part.numel() for _, part in segments))
    at = 0
    for _, part in segments:
        into[at : at + part.numel()] = part.flatten()
        at += part.numel()
    return into


def _read(share: np.ndarray, where: Sequence[tuple[int, int]], into: Tensor, start: int) -> None:
    """Copies the elements of a share that belong to `into`. The first element of `into` has the number `start`."""
    stop, at = start + into.numel(), 0
    for first, length in where:
        low, high = max(start, first), min(stop, first + length)
        if low < high:
            found = torch.from_numpy(np.array(share[at + low - first : at + high - first]))
            into.view(-1)[low - start : high - start] = found
        at += length
