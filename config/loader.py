"""Reads a stack's settings from Pulumi's configuration: the only place of the program that does."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi
from pydantic import ValidationError

from config import rules
from config.edits import Keys
from config.errors import Path, Problem, SettingsError, first, move_command, remove_command
from config.mirrors import IsFile, mirror_problems
from config.models import Settings, StackFile
from config.names import StackName, name_problems, namespace_problems
from config.placement import Placer
from config.platform_stack import OutputsOf, in_platform, lender, platform_keys
from config.pod_needs import override_problems
from config.privacy import Privacy
from config.secrets import plain_secrets
from config.translate import allowed, place, problems_of, schema_at, schema_of, unknown_key
from config.trial import tried
from config.values import data, names, too_much
from config.workload import WorkloadCatalogue


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What settings are read in: the stack, files beside the program, and other stacks."""

    stack: StackName
    is_file: IsFile
    outputs_of: OutputsOf


def load(workloads: WorkloadCatalogue) -> Settings:
    """The settings of the stack being deployed.

    Raises pulumi.RunError, which the engine shows without a traceback, with all that is wrong with them.
    """
    raw, secret = _engine_config()
    around = Surroundings(stack=this_stack(), is_file=os.path.isfile, outputs_of=outputs_of)
    try:
        return load_settings(raw, around, workloads, secret_keys=secret)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None


def this_stack() -> StackName:
    """The stack being deployed."""
    return StackName(pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())


def _engine_config() -> tuple[dict[str, str], set[str]]:
    """All keys that the engine handed over, and which are secret: `pulumi.Config` can read keys but not list them."""
    engine = pulumi.runtime.config
    raw: dict[str, str] = {**engine.get_config_env(), **engine.CONFIG.get()}
    named = set(engine.get_config_secret_keys_env())
    return raw, {key for key in raw if key in named or engine.is_config_secret(key)}


def outputs_of(stack: str) -> Mapping[str, Any]:
    """A stack's outputs, secret ones too, from the engine. Raises LookupError with the engine's reason.

    A StackReference would hand them out as Outputs only, too late for rules.
    """
    try:
        found = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": stack})
    except Exception as error:  # noqa: BLE001 - the SDK raises nothing narrower
        raise LookupError(str(error).rpartition("returned an error: ")[2]) from None
    outputs: Mapping[str, Any] = found.value["outputs"]
    return outputs


def load_settings(
    raw: Mapping[str, str],
    around: Surroundings,
    workloads: WorkloadCatalogue,
    *,
    secret_keys: Collection[str] = (),
) -> Settings:
    """The settings in `raw`, which maps `<namespace>:<key>` to text as Pulumi does.

    Empty text is a key not set: Pulumi.yaml has it as the default of most. Raises SettingsError with every problem at
    once. Values of `secret_keys` appear in no message.
    """
    mine = f"{around.stack.project}:"
    own = {key.removeprefix(mine): text for key, text in raw.items() if key.startswith(mine)}
    region = raw.get("azure-native:location", "")
    privacy = Privacy({key.removeprefix(mine) for key in secret_keys}, workloads)
    asked = replace(around, outputs_of=functools.cache(around.outputs_of))

    def read(keys: Keys) -> tuple[Settings, list[Problem]]:
        return _read({key: text for key, text in keys.items() if text != ""}, region, privacy, asked)

    settings, problems = read(own)
    if problems:
        raise SettingsError(tried(problems, own, lambda keys: read(keys)[1], privacy), around.stack.name)
    return settings


def _read(
    own: Mapping[str, str], region: str, privacy: Privacy, around: Surroundings
) -> tuple[Settings, list[Problem]]:
    """The settings of a stack with these keys, and all that is wrong with them; `region` is the provider's."""
    problems: list[Problem] = []
    parsed = _parse(own, privacy.workloads, problems)
    if "location" not in own and region:
        parsed["location"] = region
    stack_file, left_out = _validate(parsed, problems)
    broken = [*(problem.path for problem in problems), *left_out]
    settings, later = _place(stack_file, own, privacy, around)
    problems += (problem for problem in later if problem.stack or not _follows(problem, broken))
    return settings, problems


def _place(
    stack_file: StackFile,
    own: Collection[str],
    privacy: Privacy,
    around: Surroundings,
) -> tuple[Settings, list[Problem]]:
    """The settings with their workloads placed, on this stack's platform or another's, and what is wrong with them."""
    problems: list[Problem] = []
    platform = None
    if stack_file.platform_stack is None:
        problems += first(rules.problems(stack_file))
        problems += mirror_problems(stack_file, around.is_file)
    else:
        problems += namespace_problems(around.stack.name)
        try:
            platform = lender(stack_file.platform_stack, around.stack, around.outputs_of)
            problems += platform_keys(own, stack_file)
        except SettingsError as error:  # what belongs to a platform is not to be taken out for one that there is not
            problems += error.problems
    whole = platform.furnish(stack_file) if platform else stack_file
    placer = Placer(whole, privacy.workloads)
    placements = placer.place()
    short = platform.stack.beside(around.stack) if platform else ""
    problems += in_platform(placer.problems, short) if platform else placer.problems
    chosen = {placement.workload: placement.options for placement in placements.values()}
    problems += plain_secrets(chosen, encrypted="workloadOptions" in privacy.secret)
    rdma_resource = whole.operators.network_operator.resource_name
    problems += override_problems(placements.values(), privacy.workloads, rdma_resource)
    settings = Settings.model_construct(
        whole.model_fields_set | {"project", "stack", "placements", "lender"},
        **dict(whole),
        project=around.stack.project,
        stack=around.stack.name,
        placements=placements,
        lender=platform,
    )
    if stack_file.platform_stack is None:
        problems += name_problems(settings.names)
    return settings, problems


def _follows(problem: Problem, broken: Collection[Path]) -> bool:
    """Whether a problem may come of others that are known by their paths, so that more words would only confuse.

    Its path then is, contains or lies in theirs; or an entry was left out, as broken, of the map that it finds lacking.
    """
    path, lacking = problem.path, problem.lacking
    related = any(path[: len(other)] == other or other[: len(path)] == path for other in broken)
    left_out = any(lacking[: len(other)] == other or lacking == other[:-1] for other in broken)
    return (bool(path) and related) or (bool(lacking) and left_out)


def _keys() -> set[str]:
    """The keys of a stack file."""
    return {field.alias or name for name, field in StackFile.model_fields.items()}


def _parse(own: Mapping[str, str], workloads: WorkloadCatalogue, problems: list[Problem]) -> dict[str, Any]:
    """The text of each known key as data; what cannot be read goes to `problems`."""
    schema = schema_of(StackFile)
    parsed: dict[str, Any] = {}
    for key, text in own.items():
        here = schema_at(schema, (key,))
        if key not in _keys():
            problems.append(_unknown(key, text, own))
        elif problem := too_much(key, text):
            problems.append(problem)
        elif here.get("type") == "object":
            try:
                found = data(text)
                if key == "workloadOptions" and isinstance(found, dict):
                    problems += first(_unknown_workloads(found, workloads))
                    found = {name: options for name, options in found.items() if name in workloads}
                if found not in ({}, None):  # `pulumi config rm` leaves an empty map where it took the last key out
                    parsed[key] = found
            except ValueError:
                problems.append(Problem((key,), "is text where a map belongs", allowed(here), remove_command((key,))))
        else:
            parsed[key] = names(text) if key == "workloads" else text
    return parsed


def _unknown_workloads(options: Mapping[str, Any], workloads: WorkloadCatalogue) -> Iterator[Problem]:
    """Options of workloads that there are not, whatever they are."""
    for name in sorted(set(options) - set(workloads)):
        yield unknown_key(("workloadOptions", name), workloads, options[name], options)


def _unknown(key: str, text: str, own: Collection[str]) -> Problem:
    """The problem of an unknown key beside its own, among them paths that were set without `--path`."""
    path, known = tuple(key.split(".")), sorted(_keys())
    if len(path) > 1 and path[0] in known:
        fix = move_command((key,), path, text)
        return Problem((key,), "is a path, set without --path", ", ".join(known), fix, shows_value=False)
    return unknown_key((key,), known, text, own)


def _validate(parsed: dict[str, Any], problems: list[Problem]) -> tuple[StackFile, list[Path]]:
    """The stack file, and what was left out of it as wrong.

    That is noted, and the default stands in, so that other rules are heard. A map that needs what was left out goes
    with it: a pool without a VM size is none.
    """
    left_out: list[Path] = []
    while True:
        try:
            return StackFile.model_validate(parsed, by_alias=True, by_name=False), left_out
        except ValidationError as error:
            errors = error.errors()
            found = first(problems_of(errors, StackFile, parsed))
            problems += (problem for problem in found if problem.path not in left_out)
            for detail in sorted(errors, key=lambda found: _order(found["loc"]), reverse=True):
                left_out.append(place(detail)[: -1 if detail["type"] == "missing" else None])
                _drop(parsed, left_out[-1])


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
