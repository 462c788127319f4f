"""Azure's rules for tags:
https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations.

Azure's REST reference of tags lists reserved prefixes (Tags - Create Or Update). AKS copies the cluster's tags to all
resources that it creates, and adds its own tags (https://learn.microsoft.com/azure/aks/use-tags).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, move_command, remove_command, say
from config.schema.models import StackFile
from config.schema.unknown_keys import key_fix

OWN_PREFIXES = ("ai-on-aks", "k8s.io_cluster-autoscaler_node-template_")
MAX_TAGS, MAX_TAGS_OF_ZONES = 50, 15
"""The maximum number of tags of most resources, and of private DNS zones."""
MAX_NAME, MAX_VALUE = 128, 256
"""The maximum numbers of characters of names and values. Storage accounts allow names of 128, most resources 512."""
_OWN = 4
_FORBIDDEN = re.compile(r"[<>%&\\?/\x00-\x1f\x7f]")
_RESERVED = ("microsoft", "azure", "windows", *OWN_PREFIXES)
_PATH: Path = ("tags",)
_NAMES = f"at most {MAX_NAME} characters, none of < > % & \\ ? /, and no prefix {', '.join(_RESERVED[:3])}"


def tag_problems(stack: StackFile) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, value in stack.tags.items():
        path = (*_PATH, name)
        if what := _name_fault(name):
            fix = move_command(path, (*_PATH, _better(name)), value) if name else remove_command(path)
            yield Problem(path, what, _NAMES, fix)
        elif name.lower() in seen:
            what = f"is the same tag as {seen[name.lower()]}: Azure does not distinguish upper and lower case"
            other = seen[name.lower()]
            fix = key_fix(path, (*_PATH, other), value, stack.tags[other])
            yield Problem(path, what, "each tag once", fix)
        elif len(value) > MAX_VALUE:
            what = f"has a value of {len(value)} characters"
            yield Problem(path, what, f"at most {MAX_VALUE} characters", by_hand(path))
        seen.setdefault(name.lower(), name)
    most = (MAX_TAGS_OF_ZONES if stack.network.private or stack.entrances() else MAX_TAGS) - _OWN
    if len(stack.tags) > most:
        tagged = "private DNS zones" if most < MAX_TAGS - _OWN else "resources"
        what = f"has {len(stack.tags)} tags, but {tagged} can have {most} in addition to AKS's tags"
        how = say(f"remove {len(stack.tags) - most} of the tags: pulumi config rm --path tags.<name>")
        yield Problem(_PATH, what, f"at most {most} tags", how, shows_value=False)


def _name_fault(name: str) -> str:
    if not name:
        return "is a tag without a name"
    if len(name) > MAX_NAME:
        return f"has a name of {len(name)} characters"
    if _FORBIDDEN.search(name):
        return f"is named {name!r}, with a character that Azure does not accept"
    prefix = next((prefix for prefix in _RESERVED if name.lower().startswith(prefix)), "")
    return f"has the reserved prefix {prefix!r}" if prefix else ""


def _better(name: str) -> str:
    plain = _FORBIDDEN.sub("-", name)[: MAX_NAME - 4]
    return plain if plain and not _name_fault(plain) else f"tag-{plain}"
