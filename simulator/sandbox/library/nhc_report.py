"""Errors and warnings of aznhc checks, and a parser of numbers."""

from __future__ import annotations

from collections.abc import Sequence

NOT_RUN = "FaultCode: NHCNA"
"""The fault code of aznhc for a check that could not run."""


class Failed(Exception):
    """A failed check, with the log text of the real check."""


class Warned(Exception):
    """A check that passes with a warning, with the log text of the real check."""


def number(check: str, arguments: Sequence[str], index: int) -> float:
    """Returns an argument as a number. Raises Failed if it is not a number."""
    try:
        return float(arguments[index])
    except (IndexError, ValueError):
        given = arguments[index] if index < len(arguments) else "nothing"
        raise Failed(f"{check}: argument {index + 1} is {given}, not a number. {NOT_RUN}") from None
