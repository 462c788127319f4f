"""Files of JSON lines, and how sequences are packed end to end. No torch is needed here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

Made = TypeVar("Made")
_OPEN, _TOLD = 16, 5


class DataError(ValueError):
    """The text is for the user."""


def read(path: Path, make: Callable[[str | None, str], Made]) -> list[Made]:
    """What `make` makes of each line of a file, or of a folder's *.jsonl, given its prompt, if any, and its text.

    A line has `text`, or `prompt` and `completion`, of which the second is learnt. Raises DataError.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise DataError(f"{path} has no file *.jsonl" if path.is_dir() else f"{path} is not there")
    made, wrong = [], []
    for where, line in _lines(files):
        try:
            made.append(make(*_said(json.loads(line))))
        except ValueError as error:
            what = "not JSON" if isinstance(error, json.JSONDecodeError) else error
            wrong.append(f"{where}: {what}")
    if wrong:
        more = f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        raise DataError("; ".join(wrong[:_TOLD]) + more)
    if not made:
        raise DataError(f"{path} is empty")
    return made


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        with file.open(encoding="utf-8") as lines:
            yield from ((f"{file}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())


def _said(line: Any) -> tuple[str | None, str]:
    """Raises DataError."""
    said = line if isinstance(line, Mapping) else {}
    text, prompt, completion = (said.get(key) for key in ("text", "prompt", "completion"))
    if isinstance(prompt, str) and isinstance(completion, str):
        return prompt, completion
    if isinstance(text, str):
        return None, text
    raise DataError("neither `text` nor `prompt` and `completion`, as strings")


def pack(lengths: Sequence[int], order: Iterable[int], size: int) -> list[list[int]]:
    """Rows of at most `size` tokens: each example, in this order, goes into the first of the last rows with room."""
    rows: list[list[int]] = []
    left: list[int] = []
    for example in order:
        length = lengths[example]
        fitting = (row for row in range(max(0, len(rows) - _OPEN), len(rows)) if left[row] >= length)
        row = next(fitting, len(rows))
        if row == len(rows):
            rows.append([])
            left.append(size)
        rows[row].append(example)
        left[row] -= length
    return rows
