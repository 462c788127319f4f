"""Reads a stack's settings from Pulumi's configuration: the only place of the program that does."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

import pulumi
from pydantic import ValidationError

from config import rules
from config.errors import Path, Problem, SettingsError, remove_command, set_command
from config.mirrors import IsFile, mirror_problems
from config.models import Settings, StackFile
from config.names import name_problems
from config.placement import Placer
from config.translate import allowed, problems_of, schema_at, unknown_key
from config.workload import WorkloadCatalogue


def load(workloads: WorkloadCatalogue) -> Settings:
    """The settings of the stack being deployed.

    Raises pulumi.RunError, which the engine shows without a traceback, with all that is wrong with them.
    """
    raw, secret = _engine_config()
    try:
        project, stack = pulumi.get_project(), pulumi.get_stack()
        return load_settings(raw, project, stack, workloads, is_file=os.path.isfile, secret_keys=secret)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None


def _engine_config() -> tuple[dict[str, str], set[str]]:
    """All keys that the engine handed over, and which are secret: `pulumi.Config` can read keys but not list them."""
    engine = pulumi.runtime.config
    raw: dict[str, str] = {**engine.get_config_env(), **engine.CONFIG.get()}
    named = set(engine.get_config_secret_keys_env())
    return raw, {key for key in raw if key in named or engine.is_config_secret(key)}


def load_settings(
    raw: Mapping[str, str],
    project: str,
    stack: str,
    workloads: WorkloadCatalogue,
    *,
    is_file: IsFile,
    secret_keys: Collection[str] = (),
) -> Settings:
    """The settings in `raw`, which maps `<namespace>:<key>` to text as Pulumi does.

    Empty text is a key not set: Pulumi.yaml has it as the default of most. Raises SettingsError with every problem at
    once. Values of `secret_keys` appear in no message.
    """
    mine = f"{project}:"
    own = {key.removeprefix(mine): text for key, text in raw.items() if key.startswith(mine) and text != ""}
    hidden = {key.removeprefix(mine) for key in secret_keys}
    problems: list[Problem] = []
    parsed = _parse(own, hidden, problems)
    if "location" not in own and (region := raw.get("azure-native:location")):
        parsed["location"] = region
    stack_file = _validate(parsed, problems)
    placer = Placer(stack_file, workloads)
    placements = placer.place()
    settings = Settings.model_construct(
        stack_file.model_fields_set | {"project", "stack", "placements"},
        **dict(stack_file),
        project=project,
        stack=stack,
        placements=placements,
    )
    later = [
        *rules.problems(stack_file),
        *mirror_problems(stack_file, is_file),
        *name_problems(settings.names),
        *placer.problems,
    ]
    broken = [problem.path for problem in problems]
    problems += (problem for problem in later if not _concerns(problem.path, broken))
    if problems:
        raise SettingsError((_shown(problem, hidden) for problem in problems), stack)
    return settings


def _concerns(path: Path, broken: Collection[Path]) -> bool:
    """Whether a path is, contains or lies in one that is known to be broken, so that more words would only confuse."""
    return bool(path) and any(path[: len(other)] == other or other[: len(path)] == path for other in broken)


def _shown(problem: Problem, hidden: Collection[str]) -> Problem:
    """The problem as it may be printed; that of an unknown key holds no value to begin with."""
    secret = problem.path and problem.path[0] in hidden and problem.path[0] in _keys()
    return problem.hidden() if secret else problem


def _keys() -> set[str]:
    """The keys of a stack file."""
    return {field.alias or name for name, field in StackFile.model_fields.items()}


def _parse(own: Mapping[str, str], hidden: Collection[str], problems: list[Problem]) -> dict[str, Any]:
    """The text of each known key as data; what cannot be read goes to `problems`."""
    schema = StackFile.model_json_schema(by_alias=True)
    parsed: dict[str, Any] = {}
    for key, text in own.items():
        here = schema_at(schema, (key,))
        if key not in _keys():
            problems.append(_unknown(key, "<value>" if key in hidden else text))
        elif key == "workloads":
            parsed[key] = _names(text)
        elif here.get("type") == "object":
            try:
                found = json.loads(text)
                if found not in ({}, None):  # `pulumi config rm` leaves an empty map where it took the last key out
                    parsed[key] = found
            except json.JSONDecodeError:
                problems.append(Problem((key,), "is text where a map belongs", allowed(here), remove_command((key,))))
        else:
            parsed[key] = text
    return parsed


def _unknown(key: str, text: str) -> Problem:
    """The problem of an unknown key, among them paths that were set without `--path`."""
    path, known = tuple(key.split(".")), sorted(_keys())
    if len(path) > 1 and path[0] in known:
        fix = f"{remove_command((key,))} && {set_command(path, text)}"
        return Problem((key,), "is a path, set without --path", ", ".join(known), fix)
    return unknown_key((key,), known, text)


def _names(text: str) -> object:
    """A list of names, given as JSON text (which is also how a YAML list arrives) or separated by commas."""
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        return [name.strip() for name in text.split(",") if name.strip()]
    return [parsed] if isinstance(parsed, str) else parsed


def _validate(parsed: dict[str, Any], problems: list[Problem]) -> StackFile:
    """The stack file; where it is wrong, that is noted and the default stands in, so that other rules are heard."""
    while True:
        try:
            return StackFile.model_validate(parsed, by_alias=True, by_name=False)
        except ValidationError as error:
            errors = error.errors()
            problems += problems_of(errors, StackFile)
            for detail in sorted(errors, key=lambda found: _order(found["loc"]), reverse=True):
                _drop(parsed, detail["loc"][: -1 if detail["type"] == "missing" else None])


def _order(location: Path) -> tuple[tuple[int, str], ...]:
    """Sorts list positions as numbers, so that dropping from the end leaves the others where they are."""
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in location)


def _drop(data: Any, location: Path) -> None:
    """Takes out what stands at `location`, if it still stands there."""
    *parents, last = location
    try:
        for part in parents:
            data = data[part]
        del data[last]
    except LookupError:
        return  # it went with what held it
