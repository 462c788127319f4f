"""Reads a stack's settings from Pulumi's configuration: the only place of the program that does."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pydantic import ValidationError

from config.problems.errors import Problem, SettingsError, first, one_for_each_key
from config.problems.fixes import Fix, Path, by_hand, path_text, replace_by_hand, settings_in
from config.reading.privacy import Privacy
from config.reading.values import Keys, data, data_or_text, names, too_much, value_at
from config.rules import stack as rules
from config.rules.mirrors import IsFile, mirror_problems
from config.rules.names import job_name_problems, name_problems, namespace_problems
from config.rules.placement import Placer
from config.rules.plain_secrets import plain_secrets, plain_values
from config.rules.platform_stack import OutputsOf, in_platform, lender, platform_keys
from config.rules.pod_needs import override_problems
from config.rules.provider_keys import foreign_problems, provider_keys, unread_keys
from config.schema.inventory import Inventory
from config.schema.json_schema import Schema, allowed, schema_at, schema_of
from config.schema.models import Settings, StackFile
from config.schema.names import StackName
from config.schema.operators import Installation
from config.schema.readings import suggest
from config.schema.regions import REGION
from config.schema.translate import place, problems_of
from config.schema.unknown_keys import below, chosen_for, key_fix, unknown_key


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What settings are read in: the stack, files beside the program, and other stacks."""

    stack: StackName
    is_file: IsFile
    outputs_of: OutputsOf


def load(inventory: Inventory) -> Settings:
    """The settings of the stack being deployed.

    Raises pulumi.RunError, which the engine shows without a traceback, with all that is wrong with them.
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
    inventory: Inventory,
    *,
    secret_keys: Collection[str] = (),
) -> Settings:
    """The settings in `raw`, which maps `<namespace>:<key>` to text as Pulumi does.

    Empty text is a key not set: Pulumi.yaml has it as the default of most. Raises SettingsError with every problem at
    once. Values of `secret_keys` appear in no message.
    """
    mine = f"{around.stack.project}:"
    given = {key.removeprefix(mine): text for key, text in raw.items()}
    privacy = Privacy({key.removeprefix(mine) for key in secret_keys}, inventory)
    settings, problems = _read({key: text for key, text in given.items() if text != ""}, privacy, around)
    if problems:
        shown = [privacy.shown(problem) for problem in one_for_each_key(problems)]
        raise SettingsError(shown, around.stack.name)
    return settings


def _read(keys: Keys, privacy: Privacy, around: Surroundings) -> tuple[Settings, list[Problem]]:
    """The settings of a stack with these keys, and all that is wrong with them."""
    move = functools.partial(_move, keys=keys, inventory=privacy.inventory)
    problems = list(first(foreign_problems(keys, around.stack.project, privacy.inventory, move, privacy.secret)))
    own = {key: text for key, text in keys.items() if ":" not in key}
    of_provider = "location" not in own and REGION in keys
    with_region = {**own, "location": keys[REGION]} if of_provider else own
    parsed = _parse(with_region, privacy.inventory, problems)
    stack_file, left_out = _validate(parsed, privacy.inventory, problems)
    if of_provider:
        problems = [problem.moved(("location",), (REGION,)) for problem in problems]
    broken = [*(problem.path for problem in problems), *left_out]
    named = {*map(path_text, broken), *(name for problem in problems for name in settings_in(problem.fix))}
    settings, later = _place(stack_file, own, privacy, around)
    problems += (each for each in later if each.stack or not (_follows(each, broken) or _names(each, named)))
    return settings.model_copy(update={"location_key": REGION}) if of_provider else settings, problems


def _place(
    stack_file: StackFile,
    own: Collection[str],
    privacy: Privacy,
    around: Surroundings,
) -> tuple[Settings, list[Problem]]:
    """The settings with their workloads placed, on this stack's platform or another's, and what is wrong with them."""
    problems: list[Problem] = []
    inventory, platform = privacy.inventory, None
    if stack_file.platform_stack is None:
        installation = Installation(stack_file, inventory.operators)
        problems += first(rules.problems(installation))
        problems += mirror_problems(installation, around.is_file)
    else:
        problems += namespace_problems(around.stack.name, inventory.namespaces)
        try:
            platform = lender(stack_file.platform_stack, around.stack, around.outputs_of, inventory.stack_file)
            problems += platform_keys(own, stack_file, inventory.workload_keys)
        except SettingsError as error:  # what belongs to a platform is not to be taken out for one that there is not
            problems += error.problems
    whole = platform.furnish(stack_file) if platform else stack_file
    installation = Installation(whole, inventory.operators)
    placer = Placer(installation, inventory)
    placements = placer.place()
    short = platform.stack.beside(around.stack) if platform else ""
    problems += in_platform(placer.problems, short) if platform else placer.problems
    chosen = {placement.workload: placement.options for placement in placements.values()}
    problems += plain_secrets(chosen, encrypted="workloadOptions" in privacy.secret)
    rdma_resource, scratch = installation.brought("InfiniBand").name, installation.brought("NVMe scratch")
    problems += override_problems(placements.values(), inventory.workloads, rdma_resource, whole.operators.scheduler)
    settings = Settings.model_construct(
        whole.model_fields_set | {"project", "stack", "placements", "lender", "rdma_resource", "scratch_folder"},
        **dict(whole),
        project=around.stack.project,
        stack=around.stack.name,
        placements=placements,
        rdma_resource=rdma_resource,
        scratch_folder=scratch.name if scratch.enabled else None,
        lender=platform,
    )
    if stack_file.platform_stack is None:
        problems += name_problems(settings.names)
    problems += job_name_problems(settings.stack, [each.name for each in placements.values() if each.options.member])
    return settings, problems


def _follows(problem: Problem, broken: Collection[Path]) -> bool:
    """Whether a problem may come of others that are known by their paths, so that more words would only confuse.

    Its path then is, contains or lies in theirs; or an entry was left out, as broken, of the map that it finds lacking.
    One that storage.containers lacks may have been in an account.
    """
    path, lacking = problem.path, problem.lacking
    related = any(path[: len(other)] == other or other[: len(path)] == path for other in broken)
    maps = [("storage", *other[3:]) if other[:2] == ("storage", "accounts") else other for other in broken]
    left_out = any(lacking[: len(other)] == other or lacking == other[:-1] for other in maps)
    return (bool(path) and related) or (bool(lacking) and left_out)


def _names(problem: Problem, broken: Collection[str]) -> bool:
    """Returns whether a problem is one between settings of which another is broken, or is meant by a broken key.

    The default of that setting stands in for what the user wants, so the rule may not hold once it is fixed.
    """
    names = [*settings_in(problem.what), *settings_in(problem.fix)]
    return any(f"{name}.".startswith(f"{other}.") for name in names for other in broken)


def _parse(own: Mapping[str, str], inventory: Inventory, problems: list[Problem]) -> dict[str, Any]:
    """The text of each known key as data; what cannot be read goes to `problems`."""
    schema, workloads = schema_of(inventory.stack_file), inventory.workloads
    parsed: dict[str, Any] = {}
    for key, text in own.items():
        here = schema_at(schema, (key,))
        if key not in schema["properties"]:
            problems.append(_unknown(key, own, schema, inventory))
        elif problem := too_much(key, text):
            problems.append(problem)
        elif here.get("type") == "object":
            try:
                found = data(text)
                if key == "workloadOptions" and isinstance(found, dict):
                    unknown = sorted(set(found) - set(workloads))
                    problems += first(
                        unknown_key((key, name), workloads, found[name], found, inventory=inventory) for name in unknown
                    )
                    found = {name: options for name, options in found.items() if name in workloads}
                if found not in ({}, None):  # `pulumi config rm` leaves an empty map where it took the last key out
                    parsed[key] = found
            except ValueError:
                what = "is text where a map belongs"
                is_broken = ":" in text and isinstance(data_or_text(key, text), str)
                fix = by_hand((key,)) if is_broken else suggest((key,), here, text)
                problems.append(Problem((key,), what, allowed(here), fix))
        else:
            parsed[key] = names(text) if key == "workloads" else text
    return parsed


def _unknown(key: str, own: Keys, schema: Schema, inventory: Inventory) -> Problem:
    """Returns the problem of an unknown key, such as a path set without `--path`, or a key that stands too high."""
    path, known, text = tuple(key.split(".")), sorted(schema["properties"]), own[key]
    if len(path) > 1 and path[0] in known:
        fix = _path_fix(key, text, own, inventory)
        return Problem((key,), "is a path, set without --path", ", ".join(known), fix, shows_value=False)
    elsewhere = below(path, path, schema) or inventory.path_of(key)
    if elsewhere and len(elsewhere) > 1 and not too_much(key, text):
        value, taken = data_or_text(key, text), value_at(own, elsewhere)
        return unknown_key(
            path, known, value, {}, "is no key at the top", place=elsewhere, taken=taken, inventory=inventory
        )
    if key in provider_keys("azure-native"):
        fix = replace_by_hand((key,), {f"azure-native:{key}": False})
        what = f"is no key of this program; in its place: azure-native:{key}"
        return Problem((key,), what, ", ".join(known), fix, shows_value=False)
    lacking = chosen_for(schema, (key,), text, own)
    return unknown_key((key,), known, text, own, lacking=lacking, inventory=inventory)


def _path_fix(key: str, text: str, own: Keys, inventory: Inventory) -> Fix:
    """Returns the fix of a key that is a path, set without `--path`."""
    path = tuple(key.split("."))
    if inventory.schema(path):
        return key_fix((key,), path, text, value_at(own, path), inventory)
    known, beside = inventory.schema(path[:-1]).get("properties", {}), value_at(own, path[:-1])
    beside = beside if isinstance(beside, Mapping) else {}
    return unknown_key(path, known, text, beside, inventory=inventory).suggestion.moved(path, (key,))


def _move(key: str, there: Path, keys: Keys, inventory: Inventory) -> Fix:
    """Returns the fix of a key in another namespace, which is meant for a place."""
    value = data_or_text(key, keys[key]) if len(there) > 1 else keys[key]
    return key_fix((key,), there, value, value_at(keys, there), inventory)


def _validate(parsed: dict[str, Any], inventory: Inventory, problems: list[Problem]) -> tuple[StackFile, list[Path]]:
    """The stack file, and what was left out of it as wrong.

    That is noted, and the default stands in, so that other rules are heard. A map that needs what was left out goes
    with it: a pool without a VM size is none.
    """
    left_out: list[Path] = []
    model = inventory.stack_file
    while True:
        try:
            return model.model_validate(parsed, by_alias=True, by_name=False), left_out
        except ValidationError as error:
            errors = error.errors()
            found = first(problems_of(errors, model, parsed, inventory=inventory))
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
