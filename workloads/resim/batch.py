"""Defines a batch: its scenarios, name and place in the output container. Also defines errors of commands."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

MOST_SCENARIOS = 100_000
"""The largest number of scenarios in a batch, which is one Job. For Jobs with more indexes, Kubernetes also limits
failed and parallel indexes (pkg/apis/batch/validation/validation.go, completionsSoftLimit).
"""
MAX_NAME = 100
MAX_BATCH_NAME = 40
"""The limit that keeps a pod's host name, `<batch>-<run>-<index>`, within 63 characters."""
SCENARIO = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9._-]{{0,{MAX_NAME - 2}}}[A-Za-z0-9_-])?")
BATCH = re.compile(rf"[a-z]([a-z0-9-]{{0,{MAX_BATCH_NAME - 2}}}[a-z0-9])?")
NAMES = f"at most {MAX_NAME} letters, digits, '.', '_' and '-'; the first a letter or digit, the last not '.'"
_SHOWN = 3


class Refused(Exception):
    """An error with its cause, the allowed values and the fix."""

    def __init__(self, what: str, allowed: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.allowed, self.fix = what, allowed, fix

    def __str__(self) -> str:
        return f"{self.what}\n    allowed: {self.allowed}\n    fix:     {self.fix}"


@dataclass(frozen=True)
class Layout:
    """A batch's paths in the output container. Each namespace has its own folder."""

    namespace: str
    batch: str

    @property
    def root(self) -> str:
        return f"{self.namespace}/{self.batch}"

    @property
    def identity(self) -> str:
        return f"{self.root}/batch.json"

    def run(self, number: int) -> str:
        return f"{self.root}/runs/{number}.txt"

    @property
    def results(self) -> str:
        """The folder with one folder per finished scenario. A rename makes each complete folder appear at once."""
        return f"{self.root}/results/"

    @property
    def attempts(self) -> str:
        """The folder with files of unsuccessful attempts, by scenario and pod."""
        return f"{self.root}/attempts/"


def numbered(count: int) -> list[str]:
    return [f"scenario-{number:06d}" for number in range(count)]


def digest(scenarios: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(scenarios).encode()).hexdigest()[:16]


def default_name(scenarios: Iterable[str]) -> str:
    return f"batch-{digest(scenarios)[:8]}"


def parse(content: bytes, source: str) -> list[str]:
    """Returns a file's scenarios, one per line, without empty lines and comments. Raises Refused with the first errors.

    The file is in UTF-8, or in UTF-16 or UTF-32, which PowerShell writes. Its first character must be ASCII.
    """
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        allowed = "UTF-8 text with one scenario per line"
        raise Refused(f"{source}:{line} is not UTF-8", allowed, _fix(content, source)) from None
    stripped = ((number, line.strip()) for number, line in enumerate(re.split("\r\n?|\n", text), 1))
    lines = [(number, line) for number, line in stripped if line and not line.startswith("#")]
    if not lines:
        fix = f"seq -f 'scenario-%04g' 20 > {source}    # or --njobs 20"
        raise Refused(f"{source} has no scenarios", "one name per line", fix)
    if len(lines) > MOST_SCENARIOS:
        fix = f"split -l {MOST_SCENARIOS} {source} part-    # and submit each part"
        raise Refused(f"{source} has {len(lines):,} scenarios", f"at most {MOST_SCENARIOS:,} in a batch", fix)
    wrong = [(number, name) for number, name in lines if not SCENARIO.fullmatch(name)]
    if wrong:
        shown = "; ".join(f"line {number} is {_short(name)}" for number, name in wrong[:_SHOWN])
        more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        steps = rf"s/[^A-Za-z0-9._-]/-/g; s/^[^A-Za-z0-9]/x/; s/^\(.\{{{MAX_NAME}\}}\).*/\1/; s/[.]$/_/"
        fix = f"sed -i '{steps}' {source}"
        raise Refused(f"{source} has invalid names: {shown}{more}", NAMES, fix)
    names = [name for _, name in lines]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        shown = ", ".join(twice[:_SHOWN])
        what = f"{source} has {len(twice)} duplicate names: {shown}"
        raise Refused(what, "each name once: it is also the name of a folder", f"sort -u -o {source} {source}")
    return names


def checked_count(count: int) -> int:
    if not 1 <= count <= MOST_SCENARIOS:
        raise Refused(f"--njobs is {count:,}", f"1 to {MOST_SCENARIOS:,}", "--njobs 20")
    return count


def checked_name(name: str) -> str:
    if not BATCH.fullmatch(name):
        better = re.sub(r"[^a-z0-9-]+", "-", name.lower())[:MAX_BATCH_NAME].strip("-")
        allowed = f"at most {MAX_BATCH_NAME} lower-case letters, digits and hyphens; the first a letter"
        fix = f"--name {better if BATCH.fullmatch(better) else 'night-1'}"
        raise Refused(f"the name of the batch is {_short(name)}", allowed, fix)
    return name


def _fix(content: bytes, source: str) -> str:
    if b"\0" in content:
        return f"file {source}    # shows its type: text has no NUL bytes"
    return f"iconv -f CP1252 -t UTF-8 {source} > {source}.utf8"


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:37]}...'"
