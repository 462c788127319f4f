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
from tests.unit.config.commands import are_commands

pytestmark = pytest.mark.simulator
CASES = {
    name: case for name, case in bad_input().items() if case.keys() <= {"stack", "problems"} and are_commands(case)
}


def shapes(case: dict[str, Any]) -> set[str]:
    """Returns a case's commands with a letter for each name and value."""
    with pytest.raises(SettingsError) as caught:
        load(case["stack"])
    options = r"\bpulumi config (?:set|rm)\b|--\w+|([\w/@-]+)"
    blanked = (re.sub(options, lambda word: "w" if word[1] else word[0], p.fix) for p in caught.value.problems)
    return {command for fix in blanked for command in fix.split(" && ")}


def rows() -> Iterator[Any]:
    """Marks cases with forms of commands as in earlier ones as long."""
    seen: set[str] = set()
    for name, case in CASES.items():
        new = shapes(case) - seen
        seen |= new
        yield pytest.param(case, id=name, marks=() if new else pytest.mark.long)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    run(folder, "pulumi stack init dev")
    return folder


@pytest.mark.parametrize("case", list(rows()))
def test_the_commands_fix_the_stack(case: dict[str, Any], project: Path) -> None:
    file = project / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {full_name(key): value for key, value in case["stack"].items()}}))
    with pytest.raises(SettingsError) as caught:
        load(case["stack"])
    run(project, " && ".join(problem.fix for problem in caught.value.problems))
    fixed = yaml.safe_load(file.read_text()).get("config", {})
    load({key.removeprefix("ai-on-aks:"): value for key, value in fixed.items()})
