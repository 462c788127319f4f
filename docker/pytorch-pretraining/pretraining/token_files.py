"""Files `*.bin` of token numbers, little-endian, checked before anything is learnt of them. No numpy is needed here.

`python -m pretraining.token_files FOLDER [VOCABULARY]` checks files where they are, before a job holds GPUs for them.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_NUMPY = "python -c 'import numpy, sys; {read}.astype(\"<u{size}\").tofile(sys.argv[2])' {file} {bare}"
_LOAD, _FROM = "numpy.load(sys.argv[1]).ravel()", 'numpy.fromfile(sys.argv[1], "{dtype}")'
_STARTS = {
    b"\x93NUMPY": ("begins with a header of numpy", _NUMPY.replace("{read}", _LOAD)),
    struct.pack("<ii", 20240520, 1): ("begins with a header of llm.c, of 1024 bytes", "tail -c +1025 {file} > {bare}"),
    struct.pack("<ii", 20240801, 1): ("begins with a header of llm.c, of 1024 bytes", "tail -c +1025 {file} > {bare}"),
    b"MMIDIDX\0": ("is an index of Megatron's, which has no tokens", "rm {file}"),
    b"\x1f\x8b\x08": ("is packed", "gunzip < {file} > {bare}"),
    b"\x28\xb5\x2f\xfd": ("is packed", "unzstd < {file} > {bare}"),
    b"\xfd7zXZ\0": ("is packed", "unxz < {file} > {bare}"),
    b"BZh91AY&SY": ("is packed", "bunzip2 < {file} > {bare}"),
    b"PK\3\4": ("is an archive, of numpy, torch or zip", "unzip -l {file}    # what is in it"),
    b"PAR1": ("is Parquet", "python -c 'import pandas, sys; print(pandas.read_parquet(sys.argv[1]))' {file}"),
    b"\x89HDF": ("is HDF5", "h5dump -n {file}    # what is in it"),
}
"""First bytes of other files; what such a file is, and the command that converts or shows it."""
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{16,}")
_LEFT_OUT = re.compile(r"\.bin\.(gz|zst|bz2|xz|zip)$|\.BIN$")
_BLOCK = 8192
"""Bytes that are looked at, at the beginning, in the middle and at the end."""
_FORMATS = {2: "H", 4: "I"}
_LEAST, _UPPER = 8, 4
"""Of so many numbers or more, each second one below this: upper halves of larger numbers."""


class DataError(ValueError):
    """The text is for the user."""


def bytes_of_token(vocabulary: int) -> int:
    """Two, or four where the vocabulary needs them."""
    return 2 if vocabulary <= 2**16 else 4


def found(folder: Path, token: int, vocabulary: int | None = None) -> list[Path]:
    """Those of a folder that are not empty, of tokens of so many bytes, and of this vocabulary. Raises DataError."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in there if file.name.endswith(".bin") and file.is_file()]
    if left := [file.name for file in there if _LEFT_OUT.search(file.name)]:
        raise DataError(f"{folder} has {', '.join(left[:5])}, which are not read: unpack them, and call them *.bin")
    if not files:
        names = ", ".join(file.name for file in there[:5])
        raise DataError(f"{folder} has no file *.bin of token numbers{f', but {names}' if names else ''}")
    for file in files:
        _check_start(file, token)
    odd = [file.name for file in files if file.stat().st_size % token]
    if odd:
        raise DataError(f"{', '.join(odd)} of {folder}: no whole number of {8 * token} bits")
    full = [file for file in files if file.stat().st_size]
    if not full:
        raise DataError(f"all files of {folder} are empty")
    for file in full:
        for place, numbers in _samples(file, token):
            _check_width(file, token, numbers)
            if vocabulary and max(numbers) >= vocabulary:
                raise foreign(file, place, numbers, vocabulary)
    return full


def foreign(file: Path | str, place: int, numbers: Sequence[int], vocabulary: int) -> DataError:
    """What is wrong with a file, of which these are the numbers from that place on: some are too large."""
    size, most = bytes_of_token(vocabulary), max(numbers)
    what = f"{file}: token {most}, at {place + numbers.index(most)}, is not of a vocabulary of {vocabulary}"
    kind, many = f"{len(numbers)}{_FORMATS[size]}", sum(each >= vocabulary for each in numbers) > len(numbers) / 50
    if many and max(struct.unpack(f">{kind}", struct.pack(f"<{kind}", *numbers))) < vocabulary:
        return DataError(f"{what}: its numbers are big-endian: {_convert(file, size, f'>u{size}')}")
    if most >= 2**24:
        return DataError(f"{what}: where its numbers have 16 bits, {_convert(file, size, '<u2')}")
    return DataError(f"{what}: another tokenizer made it, or `vocabulary` has to be {most + 1} at least")


def _check_start(file: Path, token: int) -> None:
    """Raises DataError for what is more than token numbers."""
    with file.open("rb") as content:
        first = content.read(_BLOCK)
    for start, (what, command) in _STARTS.items():
        if first.startswith(start):
            raise DataError(f"{file} {what}, and bare token numbers are read: {_filled(command, file, token)}")
    if _TEXT.fullmatch(first):
        raise DataError(f"{file} is text, and token numbers are read: its tokenizer makes them of it")


def _check_width(file: Path, token: int, numbers: Sequence[int]) -> None:
    """Raises DataError where they are halves of larger numbers."""
    upper = numbers[1::2]
    if len(numbers) < _LEAST or max(upper) >= _UPPER or max(numbers[::2]) < _UPPER:
        return
    wider = 8 if token == 4 or not any((*upper, *numbers[2::4])) else 4
    what = f"{file} has numbers of {8 * wider} bits, and {8 * token} are read for this vocabulary"
    if any(upper):
        most = max(low + (high << 8 * token) for low, high in zip(numbers[::2], upper, strict=False))
        raise DataError(f"{what}: `vocabulary` has to be {most + 1} at least")
    raise DataError(f"{what}: {_convert(file, token, f'<u{wider}')}")


def _samples(file: Path, token: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Numbers of its beginning, middle and end, and where they begin."""
    size = file.stat().st_size
    with file.open("rb") as content:
        for place in sorted({0, max(0, size // 2 - _BLOCK) // 8 * 8, max(0, size - _BLOCK) // 8 * 8}):
            content.seek(place)
            block = content.read(_BLOCK + 8)
            whole = len(block) // token
            yield place // token, struct.unpack_from(f"<{whole}{_FORMATS[token]}", block)


def _convert(file: Path | str, size: int, dtype: str) -> str:
    return _filled(_NUMPY.replace("{read}", _FROM).replace("{dtype}", dtype), file, size)


def _filled(command: str, file: Path | str, size: int) -> str:
    values = {"{file}": str(file), "{bare}": str(Path(file).with_suffix(".bare.bin")), "{size}": str(size)}
    for name, value in values.items():
        command = command.replace(name, value)
    return command


if __name__ == "__main__":
    tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 51200
    try:
        files = found(Path(sys.argv[1]), bytes_of_token(tokens), tokens)
    except DataError as error:
        sys.exit(f"error: {error}")
    print(f"{sum(file.stat().st_size for file in files) // bytes_of_token(tokens):,} tokens")
