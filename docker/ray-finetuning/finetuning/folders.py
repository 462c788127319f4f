"""Checkpoints as files: which are whole, and whose. No torch is needed here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_UNFINISHED = ".unfinished"


class CheckpointError(ValueError):
    """The text is for the user."""


def unfinished(folder: Path, steps: int) -> Path:
    """Where the checkpoint of that step is written."""
    return folder / f"step-{steps}.pt{_UNFINISHED}"


def finish(file: Path, keep: int) -> None:
    """Gives a checkpoint that is whole its name, and deletes all but the newest `keep`."""
    file.rename(file.with_name(file.name.removesuffix(_UNFINISHED)))
    for old in complete(file.parent)[:-keep]:
        old.unlink()


def complete(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob("step-*.pt"), key=lambda each: int(each.stem.partition("-")[2]))


def check(file: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raises CheckpointError where the file is of another training than ours."""
    wrong = [f"{key} {theirs.get(key)} and not {value}" for key, value in ours.items() if theirs.get(key) != value]
    if wrong:
        told = ", ".join(wrong)
        raise CheckpointError(f"{file} is of another training: {told}. Take another --output for this one")
