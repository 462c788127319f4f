"""Hides secret values, but not names of keys, in problems.

Pulumi marks only whole top-level keys as secret (`Map.SecureKeys` of pulumi/pulumi,
sdk/go/common/resource/config/map.go), and passes them decrypted. This program marks single workload options (pydantic's
SecretStr), so that a password does not hide the errors of other options.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from config.problems.errors import Problem
from config.problems.fixes import Edit, Fix, Path, in_file, secret_command
from config.rules.provider_keys import is_credential
from config.schema.inventory import Inventory
from config.schema.json_schema import is_plain

_HIDDEN = "is not valid (its value is a secret, so it is not shown)"


@dataclass(frozen=True)
class Privacy:
    """The secrets in one stack's settings."""

    secret: Collection[str]
    inventory: Inventory

    def shown(self, problem: Problem) -> Problem:
        fix, path = problem.suggestion, problem.path
        if problem.shows_value and not problem.stack and self._hides(path):
            fix = self._asked_for(path) if fix.changes_keys else fix
            return replace(problem, what=_HIDDEN, suggestion=fix)
        if fix.changes_keys and fix.moves:
            return replace(problem, suggestion=self._without_values(fix, path))
        return problem

    def _asked_for(self, path: Path) -> Fix:
        is_entry = isinstance(path[-1], int)
        return secret_command(path) if is_plain(self.inventory.schema(path)) and not is_entry else in_file(path)

    def _hides(self, path: Path) -> bool:
        if self.inventory.is_option(path):
            return bool(self.inventory.schema(path).get("writeOnly"))
        return bool(path) and (path[0] in self.secret or is_credential(str(path[0])))

    def _without_values(self, fix: Fix, source: Path) -> Fix:
        is_hidden = self._hides(source)

        def shown(edit: Edit) -> Edit:
            is_option = self.inventory.is_option(edit.path)
            is_known = source[0] == "workloadOptions" and is_option and self.inventory.schema(edit.path[:3])
            hidden = self._hides(edit.path) or (is_hidden and not is_known)
            return replace(edit, secret=True) if hidden and not edit.removes else edit

        return Fix(tuple(map(shown, fix.edits)))
