"""Checkpoints: each process writes its share of the optimizer's flat tensors while training goes on.

A share says of which elements it is, so that any number of processes reads what another number wrote.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretraining import folders
from pretraining.optimizer import MasterAdamW, world


class Checkpoints:
    """Of one training, in one folder that all processes see."""

    def __init__(self, folder: Path, about: Mapping[str, Any], keep: int = 2) -> None:
        """`about` is what must be the same for a checkpoint to be of this training."""
        self.folder, self.about, self.keep = folder, dict(about), keep
        self._writer: threading.Thread | None = None
        self._failure: BaseException | None = None

    def save(self, optimizer: MasterAdamW) -> None:
        """Returns once the state is copied; writing goes on. Raises what the write before has raised."""
        self.wait()
        copied = {name: tensor.to("cpu", copy=True) for name, tensor in optimizer.state().items()}
        where = (optimizer.steps, optimizer.start, optimizer.size)
        self._writer = threading.Thread(target=self._write, args=(copied, *where))
        self._writer.start()

    def wait(self) -> None:
        """Until all is written."""
        if self._writer:
            self._writer.join()
            self._writer = None
        if self._failure:
            raise self._failure

    def _write(self, state: Mapping[str, Tensor], steps: int, start: int, size: int) -> None:
        try:
            rank, processes = world()
            part = folders.begin(self.folder, steps)
            for name, tensor in state.items():
                np.save(part / f"{name}-{start}.npy", tensor.numpy())
            folders.written(part, rank).touch()
            if rank == 0:
                folders.finish(part, processes, {**self.about, "steps": steps, "size": size}, self.keep)
        except BaseException as error:  # noqa: BLE001 - told by the next save, or at the end
            self._failure = error

    def load(self, optimizer: MasterAdamW) -> int:
        """Restores the newest; the number of its steps, 0 without any.

        Raises CheckpointError for one of another model.
        """
        if world()[0] == 0:
            folders.clear(self.folder)  # nobody saves before all have taken a step together
        found = folders.newest(self.folder, self.about)
        if found is None:
            return 0
        for name, tensor in optimizer.state().items():
            _read(found[0], name, tensor, optimizer.start)
        optimizer.restore(found[1])
        return optimizer.steps


def _read(folder: Path, name: str, into: Tensor, start: int) -> None:
    """What of the shares lies in `into`, whose first element is number `start`; beyond all of them is padding."""
    stop = start + into.numel()
    for file in folder.glob(f"{name}-*.npy"):
        first = int(file.stem.rpartition("-")[2])
        share = np.load(file, mmap_mode="r")
        low, high = max(start, first), min(stop, first + len(share))
        if low < high:
            into[low - start : high - start] = torch.from_numpy(np.array(share[low - first : high - first]))
