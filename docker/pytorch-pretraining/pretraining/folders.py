"""Folders of checkpoints: `step-<n>`, which has that name once all shares are in it.

One that was broken off has another name, and is passed over.
"""

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
    """The text is for the user."""


def begin(folder: Path, steps: int) -> Path:
    """Where all processes put their shares; each then says that it has (`written`)."""
    part = folder / f"step-{steps}{_UNFINISHED}"
    part.mkdir(parents=True, exist_ok=True)
    return part


def written(part: Path, rank: int) -> Path:
    """The file by which a process says that its share is there."""
    return part / f"rank-{rank}.written"


def finish(part: Path, processes: int, about: Mapping[str, Any], keep: int) -> None:
    """Gives it its name once all shares are there, and takes older ones away but for `keep` in all."""
    until = time.monotonic() + _LONGEST_S
    while any(not written(part, rank).exists() for rank in range(processes)):
        if time.monotonic() > until:
            raise CheckpointError(f"{part} lacks shares of other processes after {_LONGEST_S} s")
        time.sleep(_WAIT_S)
    (part / _ABOUT).write_text(json.dumps(about))
    done = part.with_name(part.name.removesuffix(_UNFINISHED))
    if done.exists():
        shutil.rmtree(done)
    _rename(part, done)
    for old in _complete(part.parent)[:-keep]:
        shutil.rmtree(old)


def _rename(part: Path, done: Path) -> None:
    """On a share by SMB a folder is busy while another node has a file of it open; Linux closes files a second late."""
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
    """The last one, and its steps. Raises CheckpointError for one of which anything of `about` is otherwise."""
    complete = _complete(folder)
    if not complete:
        return None
    found = json.loads((complete[-1] / _ABOUT).read_text())
    other = {key: (found.get(key), value) for key, value in about.items() if found.get(key) != value}
    if other:
        what = ", ".join(f"{key} {theirs} and not {ours}" for key, (theirs, ours) in other.items())
        raise CheckpointError(f"{complete[-1]} is of another training: {what}. Take another folder for this one")
    return complete[-1], int(found["steps"])


def clear(folder: Path) -> None:
    """Takes away what was broken off: whoever comes to that step again would find shares there, as if just written."""
    for part in folder.glob(f"step-*{_UNFINISHED}"):
        shutil.rmtree(part)


def _complete(folder: Path) -> list[Path]:
    """Oldest first."""
    found = [each for each in folder.glob("step-*") if not each.name.endswith(_UNFINISHED)]
    return sorted(found, key=lambda each: int(each.name.partition("-")[2]))
