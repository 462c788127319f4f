"""Explains Azure's errors and their fixes, from the table `config/data/azure_errors.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from config.data import data
from config.data.skus import Facts
from config.problems.fixes import set_command

_CODE = re.compile(r"(?i)exit(?:ed with)?[ _]?(?:status|code)\W{0,8}(\d{1,3})\b")
_NEXT_ERROR = re.compile(r"(?=Status=\d{3} Code=|\"status\": ?\d{3}|ERROR: \(|RESPONSE \d{3}: |(?<!\\)\"code\"\s*:)")
"""The start of an error in logs of pulumi, az and the SDK for Go, and in JSON with several `details`."""
_NODE_SETUP = re.compile(r"(?i)vmssCSE|CSE failed|VMExtension|AKSNode")


class Entry(Facts):
    """One kind of error; the data file explains the keys."""

    error: str = ""
    exit: list[int] = []
    detail: str = ""
    meaning: str
    fix: list[str]
    source: str


@dataclass(frozen=True)
class Place:
    """The resource that failed. In commands, <name> stands for an unknown value."""

    stack: str = "<stack>"
    region: str = "<region>"
    group: str = "<resource group>"
    cluster: str = "<cluster>"
    pool: str = "<pool>"
    tags: Collection[str] = ()
    """Names of the tags that the stack sets. Fixes omit them if a policy requires several tags."""
    managed_disk: str = "pulumi config set --path pools.<pool>.osDiskType Managed"


@dataclass(frozen=True)
class Explanation:
    meaning: str
    fixes: tuple[str, ...]
    source: str

    @property
    def unknown(self) -> int:
        return " ".join(self.fixes).count("<")

    def __str__(self) -> str:
        return "\n".join([self.meaning, *(f"    {fix}" for fix in self.fixes), f"    ({self.source})"])


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"<{key}>"


@functools.cache
def entries() -> tuple[Entry, ...]:
    return tuple(Entry.model_validate(entry) for entry in data.read("azure_errors.yaml"))


def explain(error: str, place: Place | None = None) -> Explanation | None:
    """Returns the explanation of the first matching entry, or None."""
    exit_code = _exit_code(error)
    for entry in entries():
        if exit_code in entry.exit or (entry.error and re.search(entry.error, error)):
            return _explanation(entry, error, place or Place(), str(exit_code or "unknown"))
    return None


def explained(error: str, stack: str) -> str:
    return "\n".join(str(each) for each in (error, explain(error, Place(stack))) if each)


def explain_log(log: str) -> list[Explanation]:
    found = [explain(each) for each in (_NEXT_ERROR.split(log) if _NEXT_ERROR.search(log) else [log])]
    known = list(dict.fromkeys(each for each in found if each))
    # Skip an error without details if the log also has the same error with details.
    return [
        each
        for each in known
        if not any(other.meaning == each.meaning and other.unknown < each.unknown for other in known)
    ] or [each for each in [explain(log)] if each]


def _exit_code(error: str) -> int:
    found = _CODE.finditer(error) if _NODE_SETUP.search(error) else ()
    return next((int(match[1]) for match in found if int(match[1])), 0)


def _explanation(entry: Entry, error: str, place: Place, exit_code: str) -> Explanation:
    known = {**asdict(place), "exit": exit_code}
    matches = re.finditer(entry.detail, error) if entry.detail else ()
    details = [{name: value for name, value in match.groupdict().items() if value} for match in matches] or [{}]
    has = {tag.lower() for tag in place.tags}
    details = [each for each in details if each.get("tag", "").lower() not in has] or details
    meaning = entry.meaning.format_map(_Known(known | details[0]))
    fixes = (fix.format_map(_Known(known | _commands(each, place) | each)) for each in details for fix in entry.fix)
    return Explanation(meaning, tuple(dict.fromkeys(fixes)), entry.source)


def _commands(detail: Mapping[str, str], place: Place) -> dict[str, str]:
    if "tag" not in detail:
        return {}
    return {"set_tag": set_command(("tags", detail["tag"]), "<value>").text(place.stack)}
