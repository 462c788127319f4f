"""Files `*.bin` of token numbers, little-endian, before anything of them is read."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """The text is for the user."""


def bytes_of_token(vocabulary: int) -> int:
    """Two, or four where the vocabulary needs them."""
    return 2 if vocabulary <= 2**16 else 4


def found(folder: Path, token: int) -> list[Path]:
    """Those of a folder that are not empty, of tokens of so many bytes. Raises DataError."""
    files = sorted(folder.glob("*.bin"))
    if not files:
        raise DataError(f"{folder} has no file *.bin of token numbers")
    odd = [file.name for file in files if file.stat().st_size % token]
    if odd:
        raise DataError(f"{', '.join(odd)} of {folder}: no whole number of {8 * token} bits")
    full = [file for file in files if file.stat().st_size]
    if not full:
        raise DataError(f"all files of {folder} are empty")
    return full
