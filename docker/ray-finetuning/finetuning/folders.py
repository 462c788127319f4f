"""Manages files of checkpoints, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_UNFINISHED = ".unfinished"


class CheckpointError(ValueError):
    """An error in a checkpoint, for the user."""


def unfinished(folder: Path, steps: int) -> Path:
    """Returns the file for an incomplete checkpoint."""
    return folder / f"step-{steps}.pt{_UNFINISHED}"


def finish(file: Path, keep: int) -> None:
    """Renames a complete checkpoint. Deletes all checkpoints except the newest `keep`."""
    file.rename(file.with_name(file.name.removesuffix(_UNFINISHED)))
    for old in complete(file.parent)[:-keep]:
        old.unlink()


def complete(folder: Path) -> list[Path]:
    """Returns the complete checkpoints, oldest first."""
    return sorted(folder.glob("step-*.pt"), key=lambda each: int(each.stem.partition("-")[2]))


def check(file: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raises CheckpointError if the file is from another training."""
    wrong = [f"{key} is {theirs.get(key)} instead of {own}" for key, own in ours.items() if theirs.get(key) != own]
    if wrong:
        raise CheckpointError(f"{file} belongs to another training: {', '.join(wrong)}. Use another --output")
