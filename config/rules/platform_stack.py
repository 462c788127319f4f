"""Rules for consumer stacks, which run on another stack's platform. Also creates and reads the `platform` output, which
a platform exports for its consumers.

Consumers read this output before they register any resource. So the rules for workloads in the platform's own stack
also check workloads of consumers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from config.data.output_names import NEXT, PLATFORM, PLATFORM_STACK
from config.problems.errors import Problem, SettingsError
from config.problems.fixes import Fix, remove_command, run, say, set_command
from config.schema.models import OVERRIDABLE, SHARED, PlatformOutput, PlatformStack, StackFile
from config.schema.names import StackName

_PATH = ("platformStack",)
_ALLOWED = "a stack with its own platform: a name from `pulumi stack ls`, or organization/project/name"
_LIST = "`pulumi stack ls` lists the stacks"
_PART = re.compile(r"[A-Za-z0-9_.-]{1,100}")
CONSUMER_KEYS = ("workloads", "workloadOptions", "platformStack", *OVERRIDABLE)

OutputsOf = Callable[[str], Mapping[str, Any]]
"""A function from a stack's full name to its outputs; raises LookupError with the reason if they cannot be read."""


def shared_settings(settings: StackFile) -> dict[str, Any]:
    output = settings.model_dump(mode="json", by_alias=True, exclude_unset=True, include={*SHARED})
    if settings.shared_files in ("nfs", "none"):  # the output lacks the network, which sets the default
        output.setdefault("storage", {})["sharedFiles"] = settings.shared_files
    return output


def platform_keys(own: Collection[str], stack: StackFile, of_workloads: Collection[str]) -> Iterator[Problem]:
    """Yields a problem for each key in `own` that is a setting of the platform, unless its value is the default."""
    for name, field in type(stack).model_fields.items():
        key = str(field.alias)
        if key not in (*CONSUMER_KEYS, *of_workloads) and key in own and getattr(stack, name) != field.default:
            what = f"is a setting of the platform, but this stack runs on the platform of {stack.platform_stack}"
            allowed = f"no value with platformStack; set it in stack {stack.platform_stack}"
            yield Problem((key,), what, allowed, remove_command((key,)))


def in_platform(problems: Iterable[Problem], platform: str) -> list[Problem]:
    theirs = {StackFile.model_fields[name].alias or name for name in SHARED}
    return [problem.in_stack(platform, theirs) for problem in problems]


def read_platform_stack(
    text: str, here: StackName, outputs_of: OutputsOf, stack_file: type[StackFile]
) -> PlatformStack:
    """Returns the platform that `platformStack` names; raises SettingsError if it is unusable."""
    stack = _full_name(text, here)
    if stack == here:
        raise _refused("is this stack itself", say(_LIST))
    short = stack.beside(here)
    try:
        outputs = outputs_of(str(stack))
    except LookupError as error:
        what = f"is {text!r}, but its outputs cannot be read: {error.args[0]}"
        new = f"pulumi stack init --no-select {short}"
        how = f"{_LIST}; deploy the platform first: pulumi up -s {short} (to create that stack: {new})"
        raise _refused(what, say(how)) from None
    if other := outputs.get(PLATFORM_STACK):
        raise _refused(f"is {text!r}, which itself runs on the platform of {other}", set_command(_PATH, other))
    if PLATFORM not in outputs and NEXT in outputs:
        what = f"is {text!r}, a private stack, but its second phase is not deployed"
        raise _refused(
            what, say(f"deploy the second phase from inside the network (docs/cluster-access.md): {outputs[NEXT]}")
        )
    if PLATFORM not in outputs:
        raise _refused(f"is {text!r}, a stack that has no platform yet", run(f"pulumi up -s {short}"))
    try:
        model: type[PlatformOutput[StackFile]] = PlatformOutput[stack_file]  # type: ignore[valid-type]
        output = model.model_validate(outputs[PLATFORM], by_alias=True, by_name=False)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        what = f"is {text!r}, but another version of this program wrote its output {PLATFORM} ({where})"
        raise _refused(what, run(f"pulumi up -s {short}")) from None
    return PlatformStack(stack, output)


def _full_name(text: str, here: StackName) -> StackName:
    parts = text.split("/")
    if len(parts) not in (1, 3) or not all(map(_PART.fullmatch, parts)):
        raise _refused(f"is {text!r}, not the name of a stack", say(_LIST))
    return StackName(here.organization, here.project, text) if len(parts) == 1 else StackName(*parts)


def _refused(what: str, fix: Fix) -> SettingsError:
    return SettingsError([Problem(_PATH, what, _ALLOWED, fix)])
