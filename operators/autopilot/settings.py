"""Settings of Autopilot, and what must hold of them."""

from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, set_command
from config.schema.models import StackFile
from config.schema.operators import ChartSettings

_KEY: Path = ("operators", "autopilot")
_TEST: Path = (*_KEY, "testSharedFiles")
_INTERVALS = ("repeat", "invasive")


class AutopilotSettings(ChartSettings):
    """It is off unless it is asked for: its image has the freedom of GPU nodes."""

    enabled: bool = False
    """Whether the stack has it."""
    test_shared_files: bool = False
    """Whether each node also makes, and takes away, a claim of the class of shared files with every round of checks. A
    node whose claim is not bound within 90 seconds gets the label of one with a warning.
    """


def problems(stack: StackFile, settings: AutopilotSettings) -> Iterator[Problem]:
    """Intervals with which it would end, and a test of shared files where there are none.

    `time.NewTicker` panics with 0 (pkg/cmd/main.go of 2.1.3), though by its help 0 turns the invasive checks off.
    """
    for name in _INTERVALS:
        given = settings.values.get(name)
        if isinstance(given, int) and given < 1:
            path = (*_KEY, "values", name)
            yield Problem(
                path, f"is {given}, which ends Autopilot as it starts", "whole hours, 1 or more", by_hand(path)
            )
    if settings.test_shared_files and stack.shared_class is None:
        what, allowed = "is true, but the stack has no class of shared files", "false, or storage.sharedClass"
        yield Problem(_TEST, what, allowed, set_command(_TEST, False))
