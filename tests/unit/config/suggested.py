"""Each suggestion fixes its problem, keeps all protections and does not cost more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from config.problems.errors import Problem
from config.problems.fixes import Path
from config.rules.cost import hourly_cost
from config.schema.json_schema import schema_of
from tests.support.settings import INVENTORY
from tests.unit.config import commands

Stack = Mapping[str, Any]
Look = Callable[[Stack], Sequence[Problem]]
Found = list[tuple[Path, str]]

MAX_ROUNDS = 3
"""The maximum number of previews without more suggestions: a fix may reveal another problem."""
TRUE = ("true", True)
SAFE: Mapping[str, tuple[Any, ...]] = {
    "cluster.entra": TRUE,
    "cluster.localAccounts": ("false", False),
    "network.private": TRUE,
    "network.policy": ("cilium", "calico"),
    "storage.protect": TRUE,
    "storage.auth": ("identity",),
}
"""Values that no suggestion may change, independent of the models' marks."""
STATED = ("cluster.authorizedIpRanges", "cluster.adminGroupObjectIds", "cluster.maintenanceWindow")
"""Keys that no suggestion may remove; lists keep their length."""
INVENTED = ("example.com", "00000000-")
TOP = set(schema_of(INVENTORY.stack_file)["properties"])


def check(stack: Stack, look: Look, rounds: int = MAX_ROUNDS) -> tuple[int, Sequence[Problem]]:
    """Applies all suggested commands by rounds; checks each of the first round separately.

    Returns the rounds until no command is suggested, and remaining problems.
    """
    problems = look(stack)
    for problem in _fixed(problems):
        _check_alone(problem, problems, stack, look)
    for count in range(rounds):
        if not _fixed(problems):
            return count, problems
        stack, problems = _next(stack, problems, look)
    assert not _fixed(problems), [str(problem) for problem in problems]
    return rounds, problems


def _fixed(problems: Sequence[Problem]) -> list[Problem]:
    return [each for each in problems if each.suggestion.changes_keys and commands.is_command(each.fix)]


def _check_alone(problem: Problem, problems: Sequence[Problem], stack: Stack, look: Look) -> None:
    fix = problem.fix
    after = commands.applied(stack, fix)
    for path, value in commands.parsed(fix):
        known = path[0] in TOP or ":" in str(path[0])
        assert known if value is not None else commands.is_there(stack, path), fix
    assert not list(lost(stack, after)), fix
    assert not [each for each in INVENTED if each in fix and each not in str(stack)], fix
    before, then = price(stack), price(after)
    assert problem.suggestion.moves or before is None or then is None or then <= before, fix
    assert _like(problem, _found(look(after))) < _like(problem, _found(problems)), (fix, "does not fix it by itself")


def _next(stack: Stack, problems: Sequence[Problem], look: Look) -> tuple[Stack, Sequence[Problem]]:
    fixed = _fixed(problems)
    for fix in dict.fromkeys(problem.fix for problem in fixed):
        stack = commands.applied(stack, fix)
    left = look(stack)
    for problem in fixed:
        # After the removal of an item, the next item may have an equal problem at the same position.
        most = _like(problem, _found(problems)) - _like(problem, _found(fixed))
        is_left = (problem.path, problem.what) in _found(left) and _like(problem, _found(left)) > most
        assert not is_left, (problem.fix, "does not fix it beside the others")
    return stack, left


def _found(problems: Sequence[Problem]) -> Found:
    return [(problem.path, problem.what) for problem in problems]


def _like(problem: Problem, found: Found) -> int:
    """Returns the number of equal problems, whose positions may have changed after a removal."""

    def without_places(path: Path) -> Path:
        return tuple(part for part in path if not isinstance(part, int))

    own = (without_places(problem.path), problem.what)
    return [(without_places(path), what) for path, what in found].count(own)


def price(stack: Stack) -> float | None:
    """Returns None for invalid settings."""
    keys = {key: value for key, value in stack.items() if ":" not in key and key != "workloads"}
    try:
        settings: Any = INVENTORY.stack_file.model_validate(keys, by_alias=True, by_name=False)
    except ValidationError:
        return None
    cost = hourly_cost(settings, {}) if settings.gpu_pools() else None
    return None if cost is None or cost.unknown else cost.per_hour


def lost(before: Stack, after: Stack) -> Iterator[str]:
    for key, safe in SAFE.items():
        if _at(before, key) in safe and _at(after, key) not in safe:
            yield key
    for key in STATED:
        if (stated := _at(before, key)) and len(_entries(_at(after, key))) < len(_entries(stated)):
            yield key
    for name, container in _containers(before):
        now = dict(_containers(after)).get(name, {})
        days, later = container.get("days"), now.get("days", 0)
        if isinstance(days, int) and isinstance(later, int) and not isinstance(days, bool) and 1 <= days < later:
            yield f"days of {name}"
        letters = container.get("permissions")
        if isinstance(letters, str) and set(str(now.get("permissions", ""))) - set(letters) - set("rl"):
            yield f"permissions of {name}"


def _containers(stack: Stack) -> Iterator[tuple[str, Stack]]:
    found = _at(stack, "storage.containers")
    for name, container in found.items() if isinstance(found, Mapping) else ():
        if isinstance(container, Mapping):
            yield name, container


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _at(stack: Any, key: str) -> Any:
    for part in key.split("."):
        stack = stack.get(part) if isinstance(stack, Mapping) else None
    return stack
