"""What of a problem may be printed. Names of keys always may; values may be secrets.

Pulumi says of a whole top-level key that something in it is secret (`Map.SecureKeys` of pulumi/pulumi,
sdk/go/common/resource/config/map.go), and hands it over decrypted: which value it is, nobody can tell. Options of
workloads say it of themselves (pydantic's SecretStr), so that one password does not hide what is wrong with the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from config.facts.near import is_negated, replaced_by
from config.problems.errors import Problem
from config.problems.fixes import (
    Edit,
    Fix,
    Path,
    any_name,
    by_hand,
    path_text,
    remove_command,
    replace_by_hand,
    say,
    text_of,
)
from config.reading.edits import Draft, Keys
from config.reading.protection import MAX_LENGTH, stated, weakens
from config.reading.values import value_at
from config.rules.provider_keys import is_credential
from config.schema.inventory import Inventory
from config.schema.readings import Schema, is_reading, truth_of
from config.schema.translate import is_foreign, protecting, schema_at, schema_of
from config.schema.workload import WorkloadOptions

_HIDDEN = "is not valid (its value is a secret, so it is not shown)"
_UNREAD = "text that is too long to read"


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
        return bool(fix.edits) and weakens(self.given, draft.keys(), self.schema, self.inventory.path_of)

    def words(self, problem: Problem, keys: Keys) -> tuple[Fix | None, bool]:
        """Returns words for a problem whose value neither a default nor nothing may replace, else None.

        They name the settings that an unknown key stands for, or the value that is meant where another is given. Also
        returns whether the problem's own fix, a move for instance, may be tried before them.
        """
        path, schema, model = problem.path, self.schema(problem.path), self.inventory.stack_file
        places = {key: at for key, at in protecting(model).items() if at[0] != "cluster" or not is_foreign(path, at)}
        edits = [edit for edit in problem.mending.edits if not edit.removes]
        given = value_at(keys, path) if path and len(keys.get(str(path[0]), "")) <= MAX_LENGTH else _UNREAD
        if given in (None, "", [], {}):
            return None, True
        if schema and not (problem.mending.moves and edits[0].path[: len(path)] != path):
            is_shown = not self.hides(path) and [edit.path for edit in edits] == [path]
            is_clear = is_shown and is_reading(schema, given, edits[0].value)
            other = "with the other settings that it needs"
            return say(f"set {path_text(path)} to {text_of(edits[0].value)} {other}") if is_clear else None, True
        own, beside = str(path[-1]), self.schema(path[:-1]).get("properties", ())
        found = [] if self._is_option(path) else list(stated(own, given, places, beside))
        found = [each for each in found if each[0] != own or replaced_by(path, beside) is None]
        there = [edit.path[:-1] if isinstance(edit.path[-1], int) else edit.path for edit in edits]
        sure = [each for each in there if self.schema(each).get("protects") or not found]
        meant = {self._settings(each, path): is_negated(own) for each in sure}
        for name, likely in found if not meant else ():
            meant |= {any_name(self._nearest(each, path) or places[each]): is_negated(name) for each in likely}
        is_sure = not is_negated(own) and (bool(sure) or own not in dict(found))
        needs_more = any(self.schema(each).get("required") for each in there)  # one value is not all that it needs
        if needs_more and truth_of(given) is False:
            return remove_command(path), False  # as without it
        is_sure &= not needs_more
        return (replace_by_hand(path, meant) if meant else None), not there or is_sure

    def _nearest(self, name: str, path: Path) -> Path | None:
        """Returns the protecting setting of a name in the innermost section around a path, if one has it."""
        around = ((*path[:end], name) for end in range(len(path) - 1, 0, -1))
        return next((each for each in around if self.schema(each).get("protects")), None)

    def _settings(self, path: Path, source: Path) -> str:
        """Returns the setting for what stood at a source, or those that it needs, such as the bounds of `autoscale`."""
        while len(path) > max(len(source) - 1, 1) and not self.schema(path):
            path = path[:-1]
        return " and ".join(any_name((*path, key)) for key in self.schema(path).get("required", ())) or any_name(path)

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
        mending = (self.words(problem, self.given)[0] or by_hand(problem.path)) if self.weakens(mending) else mending
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
