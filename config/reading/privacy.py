"""What of a problem may be printed. Names of keys always may; values may be secrets.

Pulumi says of a whole top-level key that something in it is secret (`Map.SecureKeys` of pulumi/pulumi,
sdk/go/common/resource/config/map.go), and hands it over decrypted: which value it is, nobody can tell. Options of
workloads say it of themselves (pydantic's SecretStr), so that one password does not hide what is wrong with the others.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from config.facts.near import is_negated, resembled
from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path, by_hand, path_text, replace_by_hand, say, text_of
from config.reading.edits import Draft, Keys
from config.reading.protection import MAX_LENGTH, unread, value_at, weakens
from config.rules.provider_keys import is_credential
from config.schema.inventory import Inventory
from config.schema.translate import Schema, place, protecting, schema_at, schema_of
from config.schema.workload import WorkloadOptions

_HIDDEN = "is not valid (its value is a secret, so it is not shown)"


@dataclass(frozen=True)
class Privacy:
    """Of the settings of one stack, with `secret` top-level keys."""

    secret: Collection[str]
    inventory: Inventory
    given: Keys = field(default_factory=dict)
    """The text of each key of the stack file."""

    def weakens(self, fix: Fix) -> bool:
        """Whether a fix takes a protection away that the stack file states (config/problems/protection.py)."""
        draft = Draft(self.given)
        try:
            draft.apply(fix)
        except ValueError:  # the CLI refuses it
            return False
        names = tuple(protecting(self.inventory.stack_file))
        return bool(fix.edits) and weakens(self.given, draft.keys(), self.schema, self.inventory.path_of, names)

    def fits(self, fix: Fix) -> bool:
        """Returns whether each value that a fix sets can stand there, whatever the other settings are."""
        for edit in fix.edits:
            value = text_of(edit.value) if isinstance(edit.value, float) else edit.value
            keys = functools.reduce(lambda below, part: {part: below}, reversed(edit.path), value)
            try:
                self.inventory.stack_file.model_validate(keys if not edit.removes else {}, by_alias=True, by_name=False)
            except ValidationError as error:
                found = ((place(each), each["type"].endswith("_type")) for each in error.errors())
                if any(path == edit.path or (of_type and path == edit.path[: len(path)]) for path, of_type in found):
                    return False
        return True

    def states(self, problem: Problem) -> bool:
        """Returns whether a problem's value is clear, so that neither a default nor nothing may take its place."""
        fix, given = problem.mending, value_at(self.given, problem.path) if problem.path else None
        if fix.moves:
            return self.fits(fix)
        set_to = [str(edit.value).lower() for edit in fix.edits if edit.path == problem.path and not edit.removes]
        schema = self.schema(problem.path)
        is_choice = schema.get("type") == "boolean" or ("enum" in schema and "protects" in schema)
        is_clear = is_choice and problem.shows_value and bool(set_to)
        return not self.hides(problem.path) and (is_clear or str(given).lower() in set_to)

    def words(self, problem: Problem) -> Fix:
        """Returns words for a problem that no command may fix: they name the settings that an unknown key may mean."""
        path, fix, places = problem.path, problem.mending, protecting(self.inventory.stack_file)
        edits = [edit for edit in fix.edits if not edit.removes]
        if not fix.moves and self.states(problem):
            return say(f"set {path_text(path)} to {text_of(edits[0].value)} with the other settings that it needs")
        there = [edit.path[:-1] if isinstance(edit.path[-1], int) else edit.path for edit in edits if fix.moves]
        negated = bool(path) and is_negated(str(path[-1]))
        is_short, names = path and len(self.given.get(str(path[0]), "")) <= MAX_LENGTH, tuple(places)
        given = value_at(self.given, path) if is_short else None
        unknown = [str(key[-1]) for key, _ in unread(path, given, self.schema, names)]
        sure = [each for each in there if self.schema(each).get("protects") or (self.schema(each) and not unknown)]
        meant = {path_text(each): negated for each in sure if each[: len(path)] != path}
        for name in unknown if not meant else ():
            meant |= {path_text(places[each]): is_negated(name) for each in resembled(name, names)}
        return replace_by_hand(path, meant) if meant or unknown else by_hand(path)

    def hides(self, path: Path) -> bool:
        """Whether what stands at a path may not be printed."""
        if self._is_option(path):
            return bool(self.schema(path).get("writeOnly"))
        return bool(path) and (path[0] in self.secret or is_credential(str(path[0])))

    def without_values(self, fix: Fix, source: Path) -> Fix:
        """The fix, which moves what stands at `source`, without values that are secret there or where they go."""

        def shown(edit: Edit) -> Edit:
            known = source[0] == "workloadOptions" and self._is_option(edit.path) and self.schema(edit.path[:3])
            hidden = self.hides(edit.path) or (not known and self.hides(source))
            return replace(edit, secret=True) if hidden and not edit.removes else edit

        return Fix(tuple(map(shown, fix.edits)))

    def shown(self, problem: Problem, mending: Fix) -> Problem:
        """The problem with another fix, as it may be printed."""
        mending = self.words(problem) if self.weakens(mending) or mending == by_hand(problem.path) else mending
        hidden = problem.shows_value and not problem.stack and self.hides(problem.path)
        return replace(problem, mending=mending, what=_HIDDEN if hidden else problem.what)

    def schema(self, path: Path) -> Schema:
        """What may stand at a path; empty where nothing is said of it."""
        if self._is_option(path):
            options: type[WorkloadOptions] = self.inventory.workloads[str(path[1])].options
            return schema_at(schema_of(options), path[2:])
        return schema_at(schema_of(self.inventory.stack_file), path)

    def _is_option(self, path: Path) -> bool:
        return len(path) > 2 and path[0] == "workloadOptions" and path[1] in self.inventory.workloads
