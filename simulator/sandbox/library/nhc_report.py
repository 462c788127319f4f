"""How checks of aznhc end other than well, and how they read their arguments."""

from __future__ import annotations

from collections.abc import Sequence

NOT_RUN = "FaultCode: NHCNA"
"""What aznhc writes where a check could not run, so that nothing is known of the node."""


class Failed(Exception):
    """A failed check, with the text that the real one logs."""


class Warned(Exception):
    """What a check that passes logs, where the real one only warns."""


def number(check: str, arguments: Sequence[str], index: int) -> float:
    """An argument that the real check compares a measurement with; raises Failed where it is none."""
    try:
        return float(arguments[index])
    except (IndexError, ValueError):
        given = arguments[index] if index < len(arguments) else "nothing"
        raise Failed(f"{check}: argument {index + 1} is {given}, not a number. {NOT_RUN}") from None
