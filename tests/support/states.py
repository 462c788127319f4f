"""What each version of the program that users may have has left in their states: URNs, and outputs that others read.

`python -m tests.support.states <day>` writes that of the program as it is now, when a version is released that day;
files of versions before stay as they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.rules.platform_stack import OUTPUT
from tests.support import golden
from tests.support.mocks import Recorder

FOLDER = Path(__file__).parent / "states"
LAST_COMMIT = "2c579baaa89552c0cc072e0e54d048d8caeacc91"
"""Of the last version, which tests/stories/test_last_version.py brings up."""
STACKS = ("dev", "entra", "jupyterlab", "mirror", "olmo", "two-pools")
"""Of the golden ones, as many as have each kind of resource, and each workload."""
PLATFORMS = ("dev", "mirror", "two-pools")
"""Those whose output `platform` is kept, which stacks of other versions read."""


class Urns:
    """URNs of one run, without stack and project: the types of a resource's parents and its own, and its name.

    Mocks know the next parent only, so these are put together as the engine does (pulumi/pulumi, sdk/go/common/resource
    /urn, New).
    """

    def __init__(self, recorder: Recorder) -> None:
        self.now: dict[str, str] = {}
        """By the end of the URN that mocks give."""
        self.before: dict[str, set[str]] = {}
        """By URN, what else the resource may be known by: its aliases."""
        for each in recorder.registered:
            request = each.request
            urn = _below(self._types(request.parent), request.type, request.name)
            next_parent = _end(request.parent).partition("::")[0].rpartition("$")[2]
            self.now[_below(next_parent, request.type, request.name)] = urn
            self.before[urn] = set(self._aliases(request))

    def _types(self, parent: str) -> str:
        return self.now.get(_end(parent), "").partition("::")[0]

    def _aliases(self, request: Any) -> Iterator[str]:
        for alias in request.aliases:
            spec = alias.spec
            parent = "" if spec.noParent else self._types(spec.parentUrn or request.parent)
            yield _below(parent, spec.type or request.type, spec.name or request.name)


def _end(urn: str) -> str:
    """Without stack and project."""
    return urn.split("::", 2)[-1]


def _below(parent: str, type_: str, name: str) -> str:
    return f"{parent}${type_}::{name}" if parent else f"{type_}::{name}"


def main(day: str) -> None:
    """Writes the URNs of all stacks, and the output `platform` of some."""
    urns = {stack: sorted(Urns(golden.run(stack)).now.values()) for stack in STACKS}
    found = {"urns": urns, "platform": {stack: golden.run(stack).shown[OUTPUT] for stack in PLATFORMS}}
    (FOLDER / f"{day}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
