"""Reads a program's recipe (simulator/sandbox/programs).

Options are listed by kind: `switches`, `integers`, `floats`, `text`, `lists`, `choices`. `words` are arguments without
dashes. `values` are Python expressions that use options and other values. An entry of `fails` is an error with a text
and the condition `if`. `lines` are templates of output, by the point at which they are printed, each after `prefix`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

KINDS: dict[str, dict[str, Any]] = {
    "switches": {"action": "store_true"},
    "switches_off": {"action": "store_false"},
    "integers": {"type": int},
    "floats": {"type": float},
    "text": {"type": str},
    "lists": {"nargs": "*"},
}
REST = {"rest": argparse.REMAINDER}
FUNCTIONS = {"__builtins__": {}, "max": max, "min": min}

Recipe = Mapping[str, Any]


class Failed(Exception):
    """An error that ends all ranks. `text` is empty if already printed. `rank` is the first failed rank."""

    def __init__(self, text: str = "", rank: int = 0, code: int = 1) -> None:
        super().__init__(text)
        self.rank, self.code = rank, code


class Parser(argparse.ArgumentParser):
    """A parser that exits with 2 if an option is wrong. Prints the recipe's message, or else argparse's message."""

    refusal = ""

    def error(self, message: str) -> NoReturn:
        if not self.refusal:
            super().error(message)
        print(self.refusal.format(message=message), file=sys.stderr)
        raise SystemExit(2)


def parser(options: Recipe) -> Parser:
    """Returns a parser. Options cannot be abbreviated."""
    made = Parser(prog=options["prog"], usage=options.get("usage"), allow_abbrev=False)
    made.refusal = options.get("refusal", "")
    for kind, how in KINDS.items():
        for name in options.get(kind, "").split():
            required: dict[str, Any] = {"required": True} if name in options.get("required", ()) else {}
            made.add_argument(*_flags(options, name), **how, **required)
    for name, choices in options.get("choices", {}).items():
        made.add_argument(*_flags(options, name), choices=choices)
    for name, count in options.get("words", {}).items():
        made.add_argument(name, nargs=REST.get(count, count))
    made.set_defaults(**options.get("defaults", {}))
    return made


class Values(dict[str, Any]):
    """Values of one run. The first use of a name in the recipe's `values` computes its value."""

    def __init__(self, recipe: Recipe, known: Mapping[str, Any]) -> None:
        super().__init__({**recipe.get("defaults", {}), **known})
        self.recipe = recipe

    def __missing__(self, name: str) -> Any:
        if name == "now":
            return datetime.now(UTC)
        self[name] = found = self._evaluate(self.recipe.get("values", {})[name])
        return found

    def error(self) -> str:
        """Returns the text of the first error that applies; empty if the program can run."""
        fails = self.recipe.get("fails", ())
        return next((str(each["text"]).format_map(self) for each in fails if self._evaluate(each["if"])), "")

    def check(self) -> None:
        """Raises Failed with the first error."""
        if text := self.error():
            raise Failed(text)

    def lines(self, point: str, more: Mapping[str, Any]) -> list[str]:
        known, prefix = Values(self.recipe, {**self, **more}), self.recipe.get("prefix", "")
        return [f"{prefix}{line}".format_map(known) for line in self.recipe["lines"][point]]

    def _evaluate(self, expression: Any) -> Any:
        return eval(str(expression), FUNCTIONS, self)  # noqa: S307 - an expression of the simulator's own recipes


def _flags(options: Recipe, name: str) -> list[str]:
    flags = [f"--{name}", f"-{options.get('short', {}).get(name, '')}"]
    if options.get("underscores"):
        flags.append(f"--{name.replace('-', '_')}")
    return [flag for flag in dict.fromkeys(flags) if flag != "-"]
