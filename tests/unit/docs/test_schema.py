from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.host import paths
from simulator.host.paths import ROOT
from tests.support.golden import FILES, STACKS
from tests.support.pages import files
from tests.support.settings import full_name
from tools.reference import SCHEMA

NAMES_SCHEMA = f"# yaml-language-server: $schema={SCHEMA.name}\n"
COPIES = {"hello": files(ROOT / "docs" / "adding-a-workload.md")["Pulumi.hello.yaml"]}
CASES = yaml.safe_load(Path(__file__).with_name("stack_files.yaml").read_text("utf-8"))
GOOD, BAD = {**STACKS, **CASES["good"]}, CASES["bad"]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart")
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: stack-files\nversion: 1.0.0\n")
    shutil.copy(SCHEMA, folder / "values.schema.json")
    return folder


def errors(chart: Path, content: str) -> str:
    file = chart / "stack.yaml"
    file.write_text(content)
    command = [str(paths.tool("helm")), "template", "x", str(chart), "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "don't meet the specifications of the schema" in done.stderr, done.stderr
    return done.stderr if done.returncode else ""


def stack_file(keys: dict[str, Any]) -> str:
    return yaml.safe_dump({"config": {full_name(key): value for key, value in keys.items()}})


@pytest.mark.simulator
@pytest.mark.parametrize("text", [file.read_text("utf-8") for file in FILES.values()] + [*COPIES.values()])
def test_accepts_the_stack_files_of_the_repository(chart: Path, text: str) -> None:
    text = text.replace("hello-gpu,hello-nodes", "olmo").replace("hello-gpu: { gpus: 2 }", "olmo: {}")
    assert errors(chart, text) == ""


@pytest.mark.simulator
@pytest.mark.parametrize("keys", GOOD.values(), ids=GOOD.keys())
def test_accepts_settings_that_the_program_accepts(chart: Path, keys: dict[str, Any]) -> None:
    assert errors(chart, stack_file(keys)) == ""


@pytest.mark.simulator
@pytest.mark.parametrize("keys", BAD.values(), ids=BAD.keys())
def test_rejects_mistakes(chart: Path, keys: dict[str, Any]) -> None:
    assert errors(chart, stack_file(keys))


@pytest.mark.parametrize("name", [*FILES, *COPIES])
def test_stack_files_name_the_schema(name: str) -> None:
    text = FILES[name].read_text("utf-8") if name in FILES else COPIES[name].partition("\n")[2]
    assert text.startswith(NAMES_SCHEMA)
