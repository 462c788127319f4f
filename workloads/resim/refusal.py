"""What a command is refused with: all that is needed to mend it, and never a traceback."""

from __future__ import annotations


class Refused(Exception):
    """What is wrong, what is allowed, and what mends it."""

    def __init__(self, what: str, allowed: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.allowed, self.fix = what, allowed, fix

    def __str__(self) -> str:
        return f"{self.what}\n    allowed: {self.allowed}\n    fix:     {self.fix}"
