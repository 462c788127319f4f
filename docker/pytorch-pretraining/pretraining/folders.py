"""Manages folders of checkpoints. A complete checkpoint is in `step-<n>`. Incomplete checkpoints are never loaded."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ABOUT, _UNFINISHED = "about.json", ".unfinished"
_WAIT_S, _LONGEST_S, _BUSY_S = 0.2, 1800, 30


class CheckpointError(ValueError):
    """An error in a checkpoint, for the user."""


def begin(folder: Path, steps: int) -> Path:
    """Returns the folder for an incomplete checkpoint, where each process writes its share and the file `written`."""
    part = folder / f"step-{steps}{_UNFINISHED}"
    part.mkdir(parents=True, exist_ok=True)
    return part


def written(part: Path, rank: int) -> Path:
    """Returns the file that marks a process's share as complete."""
    return part / f"rank-{rank}.written"


def finish(part: Path, processes: int, about: Mapping[str, Any], keep: int) -> None:
    """Waits for all shares, then renames the folder. Deletes all checkpoints except the newest `keep`."""
    until = time.monotonic() + _LONGEST_S
    while any(not written(part, rank).exists() for rank in range(processes)):
        if time.monotonic() > until:
            raise CheckpointError(f"{part} is incomplete: other processes wrote no share within {_LONGEST_S} s")
        time.sleep(_WAIT_S)
    (part / _ABOUT).write_text(json.dumps(about))
    done = part.with_name(part.name.removesuffix(_UNFINISHED))
    if done.exists():
        shutil.rmtree(done)
    _rename(part, done)
    for old in _complete(part.parent)[:-keep]:
        shutil.rmtree(old)


def _rename(part: Path, done: Path) -> None:
    """Renames a folder. Retries, because SMB denies this while a node has a file open, up to a second after use."""
    until = time.monotonic() + _BUSY_S
    while True:
        try:
            part.rename(done)
        except PermissionError:
            if time.monotonic() > until:
                raise
            time.sleep(_WAIT_S)
        else:
            return


def newest(folder: Path, about: Mapping[str, Any]) -> tuple[Path, int] | None:
    """Returns the newest checkpoint and its steps, or None. Raises CheckpointError if it has another `about`."""
    complete = _complete(folder)
    if not complete:
        return None
    found = json.loads((complete[-1] / _ABOUT).read_text())
    other = {key: (found.get(key), value) for key, value in about.items() if found.get(key) != value}
    if other:
        what = ", ".join(f"{key} is {theirs} instead of {ours}" for key, (theirs, ours) in other.items())
        raise CheckpointError(f"{complete[-1]} belongs to another training: {what}. Use another output folder")
    return complete[-1], int(found["steps"])


def clear(folder: Path) -> None:
    """Deletes incomplete checkpoints. Otherwise, old shares could become part of a new checkpoint of the same step."""
    for part in folder.glob(f"step-*{_UNFINISHED}"):
        shutil.rmtree(part)


def _complete(folder: Path) -> list[Path]:
    found = [each for each in folder.glob("step-*") if not each.name.endswith(_UNFINISHED)]
    return sorted(found, key=lambda each: int(each.name.partition("-")[2]))
