"""The hand-made way to the same goal: its README's commands, one after the other."""

from __future__ import annotations

from collections.abc import Collection

from simulator.bench.durations import Durations
from simulator.bench.schedule import Work


def works(known: Durations, options: Collection[str]) -> list[Work]:
    """The commands in a row, and what they start in the cluster. `options` says which optional ones are counted."""
    commands = [command for command in known.commands if not command.optional or command.optional in options]
    starts = {event: command.name for command in commands for event in command.starts}
    row = [
        Work(command.name, known.seconds(command.step), frozenset([before.name] if before else []))
        for before, command in zip([None, *commands], commands, strict=False)
    ]
    events = {event.name for event in known.events}
    return row + [
        Work(event.name, known.seconds(event.step), frozenset({starts[event.name], *(set(event.after) & events)}))
        for event in known.events
    ]
