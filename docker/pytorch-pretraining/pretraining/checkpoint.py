"""Checkpoints: each process writes its share of the optimizer's flat tensors while training goes on.

A share says of which elements it is, so that any number of processes reads what another number wrote. A folder gets its
name once all shares are in it: one that was broken off has another, and is passed over.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretraining.optimizer import MasterAdamW, world

_ABOUT, _UNFINISHED = "about.json", ".unfinished"
_WAIT_S, _LONGEST_S = 0.2, 1800


class CheckpointError(ValueError):
    """The text is for the user."""


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
            part = self.folder / f"step-{steps}{_UNFINISHED}"
            part.mkdir(parents=True, exist_ok=True)
            for name, tensor in state.items():
                np.save(part / f"{name}-{start}.npy", tensor.numpy())
            (part / f"rank-{rank}.written").touch()
            if rank == 0:
                self._finish(part, processes, {**self.about, "steps": steps, "size": size})
        except BaseException as error:  # noqa: BLE001 - told by the next save, or at the end
            self._failure = error

    def _finish(self, part: Path, processes: int, about: Mapping[str, Any]) -> None:
        until = time.monotonic() + _LONGEST_S
        while any(not (part / f"rank-{rank}.written").exists() for rank in range(processes)):
            if time.monotonic() > until:
                raise CheckpointError(f"{part} lacks shares of other processes after {_LONGEST_S} s")
            time.sleep(_WAIT_S)
        (part / _ABOUT).write_text(json.dumps(about))
        done = part.with_name(part.name.removesuffix(_UNFINISHED))
        if done.exists():
            shutil.rmtree(done)
        part.rename(done)
        for old in self._complete()[: -self.keep]:
            shutil.rmtree(old)

    def _complete(self) -> list[Path]:
        """Oldest first."""
        found = [each for each in self.folder.glob("step-*") if not each.name.endswith(_UNFINISHED)]
        return sorted(found, key=lambda each: int(each.name.partition("-")[2]))

    def load(self, optimizer: MasterAdamW) -> int:
        """Restores the newest; the number of its steps, 0 without any.

        Raises CheckpointError for one of another model.
        """
        complete = self._complete()
        if not complete:
            return 0
        newest = complete[-1]
        about = json.loads((newest / _ABOUT).read_text())
        other = {key: (about.get(key), value) for key, value in self.about.items() if about.get(key) != value}
        if other:
            what = ", ".join(f"{key} {theirs} and not {ours}" for key, (theirs, ours) in other.items())
            raise CheckpointError(f"{newest} is of another training: {what}. Take another folder for this one")
        for name, tensor in optimizer.state().items():
            _read(newest, name, tensor, optimizer.start)
        optimizer.restore(int(about["steps"]))
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
