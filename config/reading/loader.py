"""Reads a stack's settings from Pulumi's configuration, which no other module reads."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pulumi
from pydantic import ValidationError

from config.problems.errors import Problem, SettingsError, first, one_for_each_key
from config.problems.fixes import Fix, Path, in_file, path_text, settings_in
from config.reading.keys import move, parse
from config.reading.privacy import Privacy
from config.reading.values import Keys
from config.rules import stack as rules
from config.rules.mirrors import IsFile, mirror_problems
from config.rules.names import job_name_problems, name_problems, namespace_problems
from config.rules.placement import Placer
from config.rules.plain_secrets import plain_secrets, plain_values
from config.rules.platform_stack import OutputsOf, in_platform, platform_keys, read_platform_stack
from config.rules.pod_needs import override_problems
from config.rules.provider_keys import foreign_problems, unread_keys
from config.schema.inventory import Inventory
from config.schema.models import PlatformStack, Settings, StackFile
from config.schema.names import Names, StackName
from config.schema.operators import Installation
from config.schema.regions import REGION
from config.schema.translate import place, problems_of


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The context of settings: stack, local files, other stacks."""

    stack: StackName
    is_file: IsFile
    outputs_of: OutputsOf


def load(inventory: Inventory) -> Settings:
    """Returns the settings of the deployed stack.

    Raises pulumi.RunError with all problems, which the engine shows without a traceback.
    """
    raw, secret = _engine_config()
    around = Surroundings(stack=this_stack(), is_file=os.path.isfile, outputs_of=outputs_of)
    for warning in unread_keys(raw, around.stack.project, inventory.stack_file):
        pulumi.log.warn(warning)
    try:
        settings = load_settings(raw, around, inventory, secret_keys=secret)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    for warning in plain_values(settings, encrypted=f"{around.stack.project}:operators" in secret):
        pulumi.log.warn(warning)
    return settings


def this_stack() -> StackName:
    return StackName(pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack())


def _engine_config() -> tuple[dict[str, str], set[str]]:
    """Returns all keys with their values, and the names of the secret keys. `pulumi.Config` cannot list keys."""
    engine = pulumi.runtime.config
    raw: dict[str, str] = {**engine.get_config_env(), **engine.CONFIG.get()}
    named = set(engine.get_config_secret_keys_env())
    return raw, {key for key in raw if key in named or engine.is_config_secret(key)}


def outputs_of(stack: str) -> Mapping[str, Any]:
    """Returns the outputs of a stack, including secrets; raises LookupError with the engine's reason.

    A StackReference would return Pulumi Outputs, but the rules need the values before the program registers resources.
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
    inventory: Inventory,
    *,
    secret_keys: Collection[str] = (),
) -> Settings:
    """Returns the settings in `raw`, which maps `<namespace>:<key>` to text as Pulumi does.

    An empty string means unset; most defaults in Pulumi.yaml are empty. Raises SettingsError with all problems, but
    without values of `secret_keys`.
    """
    mine = f"{around.stack.project}:"
    given = {key.removeprefix(mine): text for key, text in raw.items()}
    privacy = Privacy({key.removeprefix(mine) for key in secret_keys}, inventory)
    return _Reading(around, inventory, privacy).settings({key: text for key, text in given.items() if text != ""})


@dataclass
class _Reading:
    around: Surroundings
    inventory: Inventory
    privacy: Privacy
    problems: list[Problem] = field(default_factory=list)

    def settings(self, keys: Keys) -> Settings:
        stack, inventory = self.around.stack, self.inventory
        to_place = functools.partial(move, keys=keys, inventory=inventory)
        self.problems += first(foreign_problems(keys, stack.project, inventory, to_place, self.privacy.secret))
        own = {key: text for key, text in keys.items() if ":" not in key}
        of_provider = "location" not in own and REGION in keys
        parsed = parse({**own, "location": keys[REGION]} if of_provider else own, inventory, self.problems)
        stack_file, left_out = _validate(parsed, inventory, self.problems)
        if of_provider:
            self.problems[:] = [problem.moved(("location",), (REGION,)) for problem in self.problems]
        broken = [*(problem.path for problem in self.problems), *left_out]
        named = {*map(path_text, broken), *(name for problem in self.problems for name in settings_in(problem.fix))}
        found, later = self._placed(stack_file, own)
        self.problems = [_with_next_fix(each, later) for each in self.problems]
        self.problems += (each for each in later if each.stack or not (_follows(each, broken) or _names(each, named)))
        if self.problems:
            shown = [self.privacy.shown(problem) for problem in one_for_each_key(self.problems)]
            raise SettingsError(shown, stack.name)
        return inventory.settings_of(**found, location_key=REGION if of_provider else "location")

    def _placed(self, stack_file: StackFile, own: Collection[str]) -> tuple[dict[str, Any], list[Problem]]:
        stack, inventory, problems = self.around.stack, self.inventory, list[Problem]()
        platform = self._platform(stack_file, own, problems)
        merged = platform.with_shared_settings(stack_file) if platform else stack_file
        installation = Installation(merged, inventory.operators)
        if stack_file.platform_stack is None:
            problems += first(rules.problems(installation))
            problems += mirror_problems(installation, self.around.is_file)
            problems += name_problems(Names(stack.project, stack.name, merged.cluster.resource_group))
        placer = Placer(installation, inventory)
        placements = placer.place()
        short = platform.stack.beside(stack) if platform else ""
        problems += in_platform(placer.problems, short) if platform else placer.problems
        chosen = {placement.workload: placement.options for placement in placements.values()}
        problems += plain_secrets(chosen, encrypted="workloadOptions" in self.privacy.secret)
        rdma_resource, scratch = installation.brought("InfiniBand").name, installation.brought("NVMe scratch")
        scheduler, workloads = merged.operators.scheduler, inventory.workloads
        problems += override_problems(placements.values(), workloads, rdma_resource, scheduler)
        problems += job_name_problems(stack.name, [each.name for each in placements.values() if each.options.member])
        found = {
            "stack_file": merged,
            "project": stack.project,
            "stack": stack.name,
            "placements": placements,
            "rdma_resource": rdma_resource,
            "scratch_folder": scratch.name if scratch.enabled else None,
            "shared_platform": platform,
        }
        return found, problems

    def _platform(self, stack_file: StackFile, own: Collection[str], problems: list[Problem]) -> PlatformStack | None:
        if stack_file.platform_stack is None:
            return None
        stack, inventory = self.around.stack, self.inventory
        problems += namespace_problems(stack.name, inventory.namespaces)
        try:
            platform = read_platform_stack(
                stack_file.platform_stack, stack, self.around.outputs_of, inventory.stack_file
            )
        except SettingsError as error:  # skip platform_keys without a platform
            problems += error.problems
            return None
        problems += platform_keys(own, stack_file, inventory.workload_keys)
        return platform


def _with_next_fix(problem: Problem, later: Iterable[Problem]) -> Problem:
    """Returns the problem; if the suggested value would cause a `later` problem, with a fix for both."""
    own, path = problem.suggestion, problem.path
    found = next((each for each in later if each.path[: len(path)] == path), None) if own.sets(path) else None
    if found and found.path != path:
        return replace(problem, suggestion=in_file(path))
    if found is None or not found.suggestion.edits:
        return problem
    fix = found.suggestion if any(edit.path == path for edit in found.suggestion.edits) else None
    return replace(problem, allowed=found.allowed, suggestion=fix or Fix((*own.steps, *found.suggestion.steps)))


def _follows(problem: Problem, broken: Collection[Path]) -> bool:
    """Returns whether a problem may be only a consequence of broken settings.

    It may be if its path is, contains or is inside a broken path, or if a map lacks an entry and a broken entry was
    removed from that map. A container that storage.containers lacks may be a broken one of an account.
    """
    path, lacking = problem.path, problem.lacking
    related = any(path[: len(other)] == other or other[: len(path)] == path for other in broken)
    maps = [("storage", *other[3:]) if other[:2] == ("storage", "accounts") else other for other in broken]
    left_out = any(lacking[: len(other)] == other or lacking == other[:-1] for other in maps)
    return (bool(path) and related) or (bool(lacking) and left_out)


def _names(problem: Problem, broken: Collection[str]) -> bool:
    """Returns whether a problem's text names another broken setting, or a setting that a broken key means.

    Such a setting has its default here, so the problem may not exist after the fix.
    """
    names = [*settings_in(problem.what), *settings_in(problem.fix)]
    return any(f"{name}.".startswith(f"{other}.") for name in names for other in broken)


def _validate(parsed: dict[str, Any], inventory: Inventory, problems: list[Problem]) -> tuple[StackFile, list[Path]]:
    """Returns the stack file without its invalid values, and the paths of these values.

    Suggested values, or else defaults, replace the invalid values, so that other rules still run. A map that lacks a
    required key is removed, too, such as a pool without a VM size.
    """
    left_out: list[Path] = []
    model = inventory.stack_file
    while True:
        try:
            return model.model_validate(parsed, by_alias=True, by_name=False), left_out
        except ValidationError as error:
            errors = error.errors()
            found = list(first(problems_of(errors, model, parsed, inventory=inventory)))
            problems[:] = [_with_next_fix(each, found) for each in problems]
            new = [each for each in found if not any(each.path[: len(path)] == path for path in left_out)]
            problems += new
            for detail in sorted(errors, key=lambda found: _order(found["loc"]), reverse=True):
                left_out.append(place(detail)[: -1 if detail["type"] == "missing" else None])
                _drop(parsed, left_out[-1])
            for problem in new:
                if problem.suggestion.sets(problem.path) and all(isinstance(part, str) for part in problem.path):
                    _put(parsed, problem.suggestion)


def _order(location: Path) -> tuple[tuple[int, str], ...]:
    """Returns a sort key that compares list indexes as numbers. In reverse order, removals shift no other entry."""
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in location)


def _put(data: dict[str, Any], fix: Fix) -> None:
    for edit in fix.edits:
        here: Any = data
        for part, below in pairwise(edit.path):
            here = here.setdefault(part, [] if isinstance(below, int) else {})
        if isinstance(here, list):
            here.append(edit.value)
        elif not edit.removes:
            here[edit.path[-1]] = edit.value


def _drop(data: Any, location: Path) -> None:
    *parents, last = location
    try:
        for part in parents:
            data = data[part]
        del data[last]
    except LookupError:
        return  # the value was removed with its parent
