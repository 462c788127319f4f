"""Reads files of JSON lines, and packs sequences end to end, without torch.

Run `python -m finetuning.lines PATH` to check files before a job occupies GPUs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

Made = TypeVar("Made")
_OPEN, _SHOWN = 16, 5
_TEXTS = ("text", "prompt", "completion")
_STARTS = {
    b"\x1f\x8b": "compressed: gunzip < {file} > {file}.out",
    b"\x28\xb5\x2f\xfd": "compressed: unzstd < {file} > {file}.out",
    b"BZh": "compressed: bunzip2 < {file} > {file}.out",
    b"\xfd7zXZ": "compressed: unxz < {file} > {file}.out",
    b"PK\3\4": "compressed: unzip -p {file} > {file}.out",
    b"PAR1": 'Parquet: python -c \'import pandas, sys; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[1] + ".out", '
    'orient="records", lines=True)\' {file}',
    b"version https://git-lfs": "a pointer of Git LFS, not the data: git lfs pull",
}
"""First bytes of other formats, with the format's name and the command that converts the file to JSON lines."""
_LEFT_OUT = re.compile(r"(?i:\.jsonl\.(gz|zst|bz2|xz|zip))$|\.JSONL$")
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A character by which `surrogateescape` represents a byte that is not UTF-8."""
_ONE_A_LINE = "each line must be one object: jq -c 'if type == \"array\" then .[] else . end'"


class DataError(ValueError):
    """An error in the data, with a message for the user."""


def read(path: Path, make: Callable[[str | None, str], Made]) -> list[Made]:
    """Calls `make` for each line of a file, or of all *.jsonl in a folder. Returns the results. Raises DataError.

    A line has either `text`, or `prompt` and `completion`. `make` gets the prompt (or None) and the text or completion.
    """
    made, wrong = [], []
    for file in _files(path):
        try:
            for number, line in _lines(file):
                try:
                    made.append(make(*_texts(_parsed(line))))
                except ValueError as error:
                    wrong.append(f"{file}:{number}: {error}")
        except DataError as error:  # about the whole file
            wrong.append(str(error))
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise DataError("; ".join(wrong[:_SHOWN]) + more)
    if not made:
        raise DataError(f"{path} is empty")
    return made


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path} does not exist")
        return [path]
    there = sorted(path.iterdir())
    files = [file for file in there if file.name.endswith(".jsonl") and file.is_file()]
    left = [file.name for file in there if _LEFT_OUT.search(file.name)]
    if not files or left:
        names = ", ".join((left or [file.name for file in there])[:_SHOWN])
        what = "has files that are not read: decompress them, and name them *.jsonl" if files else "has no file *.jsonl"
        raise DataError(f"{path} {what}{f' ({names})' if names else ''}")
    return files


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yields lines that are not empty, and their numbers. Raises DataError if the file is not UTF-8."""
    with file.open("rb") as beginning:
        first = beginning.read(32)
    if other := next((each for start, each in _STARTS.items() if first.startswith(start)), ""):
        raise DataError(f"{file} is {other.format(file=file)}")
    if not (encoding := json.detect_encoding(first)).startswith("utf-8"):
        raise _encoded(f"{file}:1", file, re.sub(r"-([bl]e)$", r"\1", encoding).upper())
    has_utf8 = False
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            if "\0" in line:
                raise DataError(f"{file}:{number} has NUL bytes: it is binary, or UTF-16 was appended to UTF-8")
            if _ESCAPED.search(line) and has_utf8:
                hint = f"lines before it are UTF-8, so fix this one: sed -n {number}p {file}"
                raise DataError(f"{file}:{number} is not UTF-8; {hint}")
            if _ESCAPED.search(line):
                raise _encoded(f"{file}:{number}", file, _guess(line.encode("utf-8", "surrogateescape")))
            has_utf8 = has_utf8 or not line.isascii()
            if bare := line.strip("\ufeff \t\r\n"):  # a concatenated file may have a byte-order mark in any line
                yield number, bare


def _guess(line: bytes) -> str:
    """Returns the probable encoding, or an empty string if several are possible.

    A Chinese character has two bytes. Its first byte is mostly from 0xb0 to 0xd8. In Korean, first bytes are at most
    0xc8. Western text has at most two consecutive bytes above 0x7f. Cyrillic and Japanese text have more.
    """
    runs = re.findall(b"[\x80-\xff]+", line)
    firsts = sorted(b"".join(runs)[::2])
    if all(len(run) % 2 == 0 for run in runs) and 0xB0 <= firsts[len(firsts) // 2] < 0xD8 and firsts[-1] > 0xC8:
        return "GB18030"
    if max(map(len, runs)) > 2:
        return ""
    try:
        line.decode("cp1252")
    except UnicodeDecodeError:
        return "ISO-8859-1"
    return "CP1252"


def _encoded(where: str, file: Path, encoding: str) -> DataError:
    command = f"iconv -f {encoding or '<encoding>'} -t UTF-8 {file} > {file}.utf8"
    return DataError(f"{where} is not UTF-8{f', probably {encoding}' if encoding else ''}: {command}")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        hint = f"; {_ONE_A_LINE}" if line in ("[", "{", "[{") else ""
        raise DataError(f"not JSON ({error.msg}, column {error.colno}){hint}") from error
    except RecursionError as error:
        raise DataError("JSON that is nested too deeply") from error


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the JSON object. Raises DataError if the key `text`, `prompt` or `completion` occurs twice."""
    texts = [key for key, _ in pairs if key in _TEXTS]
    if len(set(texts)) < len(texts):
        raise DataError(f"duplicate key in {', '.join(texts)}")
    return dict(pairs)


def _texts(line: Any) -> tuple[str | None, str]:
    if isinstance(line, list):
        raise DataError(f"a JSON array; {_ONE_A_LINE}")
    fields = line if isinstance(line, Mapping) else {}
    text, prompt, completion = (fields.get(key) for key in _TEXTS)
    if isinstance(prompt, str) and isinstance(completion, str):
        text = completion
    else:
        prompt = None
    if not isinstance(text, str):
        has = ", ".join(f"{key}: {json.dumps(value)[:20]}" for key, value in fields.items())[:80]
        raise DataError(f"neither `text` nor `prompt` and `completion`, as strings; it has {has or 'none'}")
    if not (prompt or text):
        raise DataError("the text is empty")
    try:
        f"{prompt}{text}".encode()
    except UnicodeEncodeError as error:
        raise DataError("a lone surrogate (\\ud800 to \\udfff) is not a character") from error
    return prompt, text


def pack(lengths: Sequence[int], order: Iterable[int], size: int) -> list[list[int]]:
    """Returns rows of at most `size` tokens. Puts each example, in `order`, into the first recent row with space."""
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


if __name__ == "__main__":
    try:
        print(f"{len(read(Path(sys.argv[1]), lambda *_: None))} examples")
    except DataError as error:
        sys.exit(f"error: {error}")
