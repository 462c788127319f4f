"""The commands that messages give are run by the real CLI, and fix what they say they fix."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.problems.errors import SettingsError
from simulator.host.paths import ROOT
from tests.support.case_files import bad_input
from tests.support.pulumi_cli import run
from tests.support.settings import full_name, load

pytestmark = pytest.mark.simulator
CASES = {name: case for name, case in bad_input().items() if not (case.get("by_hand") or case.get("rounds"))}


def shapes(case: dict[str, Any]) -> set[str]:
    """What the CLI has to read in a case's commands: their words, with a letter for each name and value."""
    with pytest.raises(SettingsError) as caught:
        load(case["stack"])
    options = r"\bpulumi config (?:set|rm)\b|--\w+|([\w/@-]+)"
    blanked = (re.sub(options, lambda word: "w" if word[1] else word[0], p.fix) for p in caught.value.problems)
    return {command for fix in blanked for command in fix.split(" && ")}


def rows() -> Iterator[Any]:
    """All cases; long are those whose commands look like earlier ones', for each takes a third of a second and more."""
    seen: set[str] = set()
    for name, case in CASES.items():
        new = shapes(case) - seen
        seen |= new
        yield pytest.param(case, id=name, marks=() if new else pytest.mark.long)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this project's Pulumi.yaml and a stack file of its own; no stack is needed to edit it."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    run(folder, "pulumi stack init dev")
    return folder


@pytest.mark.parametrize("case", list(rows()))
def test_the_commands_mend_the_stack(case: dict[str, Any], project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {full_name(key): value for key, value in case["stack"].items()}}))
    with pytest.raises(SettingsError) as caught:
        load(case["stack"])
    run(project, " && ".join(problem.fix for problem in caught.value.problems))
    mended = yaml.safe_load(file.read_text()).get("config", {})
    load({key.removeprefix("ai-on-aks:"): value for key, value in mended.items()})
