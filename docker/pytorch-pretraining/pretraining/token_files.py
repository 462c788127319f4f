"""Checks files `*.bin` of little-endian token numbers, without torch and numpy.

Run `python -m pretraining.token_files FOLDER [VOCABULARY]` to check files before a job occupies GPUs.
"""

from __future__ import annotations

import codecs
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_NUMPY = "python -c 'import numpy, sys; {read}.astype(\"<u{size}\").tofile(sys.argv[2])' {file} {bare}"
_LOAD, _FROM = "numpy.load(sys.argv[1]).ravel()", 'numpy.fromfile(sys.argv[1], "{dtype}")'
_LLM_C_TOKENS = ("begins with a header of llm.c, of 1024 bytes", "tail -c +1025 {file} > {bare}")
_LLM_C = {
    20240326: "a model",
    20240327: "a training state",
    20240328: "a tokenizer",
    20240522: "an evaluation",
    20240527: "a training state",
    20240803: "a model",
}
"""First numbers of llm.c's files without tokens (karpathy/llm.c: dev/data/data_common.py, train_gpt2.py,
train_llama3.py).
"""
_STARTS = {
    b"\x93NUMPY": ("begins with a header of numpy", _NUMPY.replace("{read}", _LOAD)),
    **{struct.pack("<i", magic): _LLM_C_TOKENS for magic in (20240520, 20240801)},  # version 1: 16 bits, 7: 32 bits
    **{struct.pack("<i", magic): (f"is {what} of llm.c", "mv {file} {file}.llmc") for magic, what in _LLM_C.items()},
    b"MMIDIDX\0": ("is an index of a Megatron dataset, without tokens", "mv {file} {file}.idx"),
    b"\x1f\x8b\x08": ("is compressed", "gunzip < {file} > {bare}"),
    b"\x28\xb5\x2f\xfd": ("is compressed", "unzstd < {file} > {bare}"),
    b"\xfd7zXZ\0": ("is compressed", "unxz < {file} > {bare}"),
    b"BZh91AY&SY": ("is compressed", "bunzip2 < {file} > {bare}"),
    b"PK\3\4": ("is a zip archive, as numpy and torch write", "unzip -l {file}    # lists its content"),
    b"\x04\x22M\x18": ("is compressed", "unlz4 < {file} > {bare}"),
    b"\x80\x02\x8a\nl\xfcF\xf9j": ("is a checkpoint of torch", "mv {file} {file}.pt"),
    b"GGUF": ("is a model of llama.cpp", "mv {file} {file}.gguf"),
    b"ARROW1\0\0": ("is Arrow", "python -c 'import pandas, sys; print(pandas.read_feather(sys.argv[1]))' {file}"),
    b"PAR1": ("is Parquet", "python -c 'import pandas, sys; print(pandas.read_parquet(sys.argv[1]))' {file}"),
    b"\x89HDF": ("is HDF5", "h5dump -n {file}    # lists its content"),
}
"""First bytes of other formats, each with a description and the command that converts or lists such a file."""
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0e-\x1f\x7f]")
_LEAST_TEXT, _LEAST_BYTES, _LEAST_DISTINCT = 16, 256, 9
"""To count as text, a file needs this many bytes; this many if it is not Unicode; and this many different bytes."""
_LEFT_OUT = re.compile(r"\.bin\.(gz|zst|bz2|xz|zip)$|\.BIN$")
_BLOCK = 8192
"""The number of bytes read at the beginning, in the middle and at the end of a file."""
_FORMATS = {2: "H", 4: "I"}
_LEAST, _UPPER = 8, 4
"""If a file has at least `_LEAST` numbers, and every second one is below `_UPPER`, the file's numbers are wider."""


class DataError(ValueError):
    """An error in the data, with a message for the user."""


def bytes_of_token(vocabulary: int) -> int:
    """Returns the bytes of a token: 2, or 4 if the vocabulary is too large for two bytes."""
    return 2 if vocabulary <= 2**16 else 4


def found(folder: Path, token: int, vocabulary: int | None = None) -> list[Path]:
    """Checks the files of a folder, and returns those that are not empty. Raises DataError.

    Args:
        folder: The folder with files `*.bin`.
        token: The bytes of a token.
        vocabulary: The number of tokens in the vocabulary, or None to skip that check.
    """
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in there if file.name.endswith(".bin") and file.is_file()]
    if left := [file.name for file in there if _LEFT_OUT.search(file.name)]:
        raise DataError(f"{folder} has {', '.join(left[:5])}, which are not read: decompress them, and name them *.bin")
    if not files:
        names = ", ".join(file.name for file in there[:5])
        raise DataError(f"{folder} has no file *.bin of token numbers{f', but {names}' if names else ''}")
    for file in files:
        _check_start(file, token)
    odd = [file.name for file in files if file.stat().st_size % token]
    if odd:
        raise DataError(f"{', '.join(odd)} of {folder}: the size is not a multiple of {8 * token} bits")
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
    """Returns the error for a file with tokens outside the vocabulary. `numbers` start at the position `place`."""
    size, most = bytes_of_token(vocabulary), max(numbers)
    what = f"{file}: token {most}, at {place + numbers.index(most)}, is not in a vocabulary of {vocabulary}"
    kind, many = f"{len(numbers)}{_FORMATS[size]}", sum(each >= vocabulary for each in numbers) > len(numbers) / 50
    if many and max(struct.unpack(f">{kind}", struct.pack(f"<{kind}", *numbers))) < vocabulary:
        return DataError(f"{what}: the file is big-endian: {_convert(file, size, f'>u{size}')}")
    if most >= 2**20:  # vocabularies are smaller
        return DataError(f"{what}: if the file has 16 bits per token, run {_convert(file, size, '<u2')}")
    return DataError(f"{what}: another tokenizer wrote it, or `vocabulary` must be at least {most + 1}")


def _check_start(file: Path, token: int) -> None:
    with file.open("rb") as content:
        first = content.read(_BLOCK)
    for start, (what, command) in _STARTS.items():
        if first.startswith(start):
            raise DataError(f"{file} {what}; only raw token numbers are read: {_filled(command, file, token)}")
    if first[4:].startswith(b'\0\0\0\0{"'):
        raise DataError(f"{file} is a model in the format safetensors; only raw token numbers are read")
    if encoding := _encoding(first):
        raise DataError(f"{file} is text ({encoding}); only raw token numbers are read: run a tokenizer on it")


def _encoding(first: bytes) -> str | None:
    """Returns the encoding of a file that begins with `first`, or None if it is not text.

    Token numbers nearly always contain control characters.
    """
    if len(first) < _LEAST_TEXT:
        return None
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = first.decode("utf-16", errors="replace")
        printable = sum(each.isspace() or (each.isprintable() and each != "\ufffd") for each in text)
        return "UTF-16" if printable > 0.95 * len(text) else None
    varied = len(set(first)) >= _LEAST_DISTINCT
    if _CONTROL.search(first) or not (varied or first.isascii()):
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(first)
    except UnicodeDecodeError:
        return "neither ASCII nor Unicode" if len(first) >= _LEAST_BYTES else None
    if first.startswith(codecs.BOM_UTF8):
        return "UTF-8 with a byte-order mark"
    return "ASCII" if first.isascii() else "UTF-8"


def _check_width(file: Path, token: int, numbers: Sequence[int]) -> None:
    first, second = numbers[::2], numbers[1::2]
    for order, low, high in (("<", first, second), (">", second, first)):
        if len(numbers) < _LEAST or max(high) >= _UPPER or max(low) < _UPPER:
            continue
        wider = 8 if token == 4 or not any((*high, *(low[1::2] if order == "<" else low[::2]))) else 4
        what = f"{file} has {8 * wider} bits per token, and {8 * token} are read for this vocabulary"
        if order == "<" and any(high):
            most = max(below + (above << 8 * token) for below, above in zip(low, high, strict=False))
            raise DataError(f"{what}: `vocabulary` must be at least {most + 1}")
        raise DataError(f"{what}: {_convert(file, token, f'{order}u{wider}')}")


def _samples(file: Path, token: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    size = file.stat().st_size
    with file.open("rb") as content:
        for place in sorted({0, max(0, size // 2 - _BLOCK) // 8 * 8, max(0, size - _BLOCK) // 8 * 8}):
            content.seek(place)
            block = content.read(_BLOCK + 8)
            count = len(block) // token
            yield place // token, struct.unpack_from(f"<{count}{_FORMATS[token]}", block)


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
