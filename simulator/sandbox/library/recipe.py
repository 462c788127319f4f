"""Reads a recipe of a program (simulator/sandbox/programs): its options, its errors and its lines.

Options are listed by kind: `switches`, `whole`, `fraction`, `text`, `lists`, `choices`; `words` have no dashes. An
entry of `fails` has a text, and conditions on values that must all hold: `when` and `unless` compare; `indivisible`,
`below` and `not_below` name two values. `lines` are templates, by the time when the program prints them, after the
`prefix`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

KINDS = {"whole": int, "fraction": float, "text": str}
SWITCHES = {"switches": "store_true", "switches_off": "store_false"}
REST = {"rest": argparse.REMAINDER}

Recipe = Mapping[str, Any]


class Failed(Exception):
    """An error that ends a program or all ranks: text (empty if already printed), first failed rank, exit code."""

    def __init__(self, text: str = "", rank: int = 0, code: int = 1) -> None:
        super().__init__(text)
        self.rank, self.code = rank, code


class Parser(argparse.ArgumentParser):
    """Rejects a command line with exit code 2, with the recipe's message if it has one."""

    refusal = ""

    def error(self, message: str) -> NoReturn:
        if not self.refusal:
            super().error(message)
        print(self.refusal.format(message=message), file=sys.stderr)
        raise SystemExit(2)


def parser(options: Recipe) -> Parser:
    """Returns the parser of a command line. Options cannot be abbreviated."""
    made = Parser(prog=options["prog"], usage=options.get("usage"), allow_abbrev=False)
    made.refusal = options.get("refusal", "")
    for kind, action in SWITCHES.items():
        for name in options.get(kind, "").split():
            made.add_argument(*_flags(options, name), action=action)
    for kind, convert in KINDS.items():
        for name in options.get(kind, "").split():
            made.add_argument(*_flags(options, name), type=convert, required=name in options.get("required", ()))
    for name in options.get("lists", "").split():
        made.add_argument(*_flags(options, name), nargs="*")
    for name, choices in options.get("choices", {}).items():
        made.add_argument(*_flags(options, name), choices=choices)
    for name, count in options.get("words", {}).items():
        made.add_argument(name, nargs=REST.get(count, count))
    made.set_defaults(**options.get("defaults", {}))
    return made


def refusal(fails: Iterable[Recipe], values: Mapping[str, Any]) -> str:
    """Returns the text of the first entry with only true conditions for the values; empty if the program can run."""
    return next((str(each["text"]).format_map(values) for each in fails if _holds(each, values)), "")


def lines(recipe: Recipe, name: str, values: Mapping[str, Any]) -> list[str]:
    """Returns the lines that the program prints at a point that the recipe names."""
    known = {"now": datetime.now(UTC), **values}
    return [f"{recipe.get('prefix', '')}{line}".format_map(known) for line in recipe["lines"][name]]


def _flags(options: Recipe, name: str) -> list[str]:
    flags = [f"--{name}", f"-{options.get('short', {}).get(name, '')}"]
    if options.get("underscores"):
        flags.append(f"--{name.replace('-', '_')}")
    return [flag for flag in dict.fromkeys(flags) if flag != "-"]


def _holds(entry: Recipe, values: Mapping[str, Any]) -> bool:
    def numbers(condition: str) -> tuple[float, float]:
        first, second = entry[condition]
        return values[first], values[second]

    conditions = (
        all(values[name] == value for name, value in entry.get("when", {}).items()),
        "unless" not in entry or any(values[name] != value for name, value in entry["unless"].items()),
        "indivisible" not in entry or numbers("indivisible")[0] % numbers("indivisible")[1] != 0,
        "below" not in entry or numbers("below")[0] < numbers("below")[1],
        "not_below" not in entry or numbers("not_below")[0] >= numbers("not_below")[1],
    )
    return all(conditions)
