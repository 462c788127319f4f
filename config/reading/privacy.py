"""What of a problem may be printed. Names of keys always may; values may be secrets.

Pulumi says of a whole top-level key that something in it is secret (`Map.SecureKeys` of pulumi/pulumi,
sdk/go/common/resource/config/map.go), and hands it over decrypted: which value it is, nobody can tell. Options of
workloads say it of themselves (pydantic's SecretStr), so that one password does not hide what is wrong with the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path, by_hand
from config.reading.edits import Draft, Keys
from config.reading.protection import weakens
from config.rules.provider_keys import is_credential
from config.schema.inventory import Inventory
from config.schema.translate import Schema, schema_at, schema_of
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
        return bool(fix.edits) and weakens(self.given, draft.keys(), self.schema, self.inventory.path_of)

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
        mending = by_hand(problem.path) if self.weakens(mending) else mending
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
