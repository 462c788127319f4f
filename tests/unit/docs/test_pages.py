"""tests/e2e runs docs/adding-a-workload.md's workloads."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.data.content_tags import IMAGES, image_names
from config.data.language_models import language_models
from config.data.scheduling import GPU_RESOURCE
from simulator.command import cli
from simulator.host.paths import ROOT
from simulator.world.faults import FaultKind
from tests.support.pages import PAGES, code, files, links, rows
from tools.image_lock import bases

COMMANDS = ROOT / "docs" / "commands.md"
TO_COPY = ROOT / "docs" / "adding-a-workload.md"
JOBS = [*PAGES, *sorted(ROOT.glob("demos/*/jobs/*.yaml"))]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_HERE = (
    ".simulator",
    "nvidia.com/",
    "hyperv/",
    "ai-on-aks/",
    "autopilot.ibm.com/",
    "workload.codeflare.dev.",
    "k8s-sigs.io/",
    *(f"{name.partition('/')[0]}/" for name in language_models()),
    "/data/",
)
"""Prefixes of text that only looks like a file."""
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
SUFFIXES = {".md", ".py", ".yaml", ".yml", ".sh", ".txt", ".in", ".toml"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text("utf-8")
    return {name for names in re.findall(r"^([a-z -]+):.*##", text, re.MULTILINE) for name in names.split()}


def test_help_lists_each_target() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    declared = (ROOT / "Makefile").read_text("utf-8").partition(".PHONY:")[2].partition("\n\n")[0]
    there = set(declared.replace("\\", " ").split()) - {"stack-file", "own-state"}  # only dependencies
    assert {line.partition(" - ")[0] for line in printed.splitlines()} == there
    assert 'eval "$(make -s env)"' in printed


def make_targets(text: str) -> list[str]:
    words = re.sub(r'^(\$ |eval "\$\()', "", text).split("#")[0].split()
    if words[:1] != ["make"]:
        return []
    return [word.rstrip(')"') for word in words[1:] if not re.match(r"-|[A-Z]+=", word)]


@every_page
def test_make_targets_exist(page: Path) -> None:
    named = [target for text in code(page) for target in make_targets(text)]
    assert not set(named) - targets()


def test_the_commands_include_every_make_target() -> None:
    assert not targets() - {target for text in code(COMMANDS) for target in make_targets(text)}


@every_page
def test_commands_of_the_simulator_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [call for text in code(page) for call in re.findall(r"python -m simulator ([^#&\n]+)", text)]
    for call in calls:
        command = call.split()[0]
        with pytest.raises(SystemExit) as done:
            cli.main([command, "--help"])
        assert done.value.code == 0, call
        text = capsys.readouterr().out
        assert not set(re.findall(r"--\w+", call)) - set(re.findall(r"--\w+", text)), call


def test_the_commands_include_every_fault() -> None:
    kinds = {kind for text in code(COMMANDS) for kind in re.findall(r"^python -m simulator fault ([a-z][a-z-]+)", text)}
    assert kinds == set(FaultKind)


@every_page
def test_files_exist(page: Path) -> None:
    named = [text for text in code(page) if FILE.fullmatch(text) and ("/" in text or Path(text).suffix in SUFFIXES)]
    named = [text for text in named if not re.fullmatch(r"[0-9.]+/[0-9]+", text)]  # address ranges
    missing = [name for name in named if not name.startswith(NOT_HERE) and not (ROOT / name).exists()]
    assert not missing
    assert not [target for target in links(page) if not (page.parent / target).exists()]


@every_page
def test_pages_have_no_paths_of_a_machine(page: Path) -> None:
    assert not re.findall(r"(?<![\w.])/(?:root|home|work|Users)/\S*", page.read_text("utf-8"))


def test_the_table_lists_every_image_with_its_bases() -> None:
    table = {row[0].strip("`"): {row[1].strip("`")} for row in rows(ROOT / "docs" / "images.md", "image")}
    assert table == {name: set(bases((IMAGES / name / "Dockerfile").read_text("utf-8"))) for name in image_names()}


def resources(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "limits" in found:
            yield found
        found = list(found.values())
    if isinstance(found, list):
        for each in found:
            yield from resources(each)


@pytest.mark.parametrize("file", JOBS, ids=lambda file: str(file.relative_to(ROOT)))
def test_containers_also_request_their_gpus(file: Path) -> None:
    """Kubernetes copies limits to requests only in pods, and Kueue counts jobs before their pods. Until 0.19.3 Kueue
    ignored limits of requeued jobs (kubernetes-sigs/kueue#15093).
    """
    text = file.read_text("utf-8")
    for block in BLOCK.findall(text) if file.suffix == ".md" else [text]:
        for each in resources(list(yaml.safe_load_all(block))):
            if GPU_RESOURCE in each["limits"]:
                assert each.get("requests") == each["limits"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copied")
    for name, text in files(TO_COPY).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_example_files_do_not_exist_yet() -> None:
    named = [name for page in PAGES for name in files(page)]
    assert {"workloads/hello_gpu.py", "workloads/hello_nodes/__init__.py"} <= set(named)
    assert not [name for name in named if (ROOT / name).exists()]


@pytest.mark.parametrize("command", [["format", "--check", "--diff"], ["check"]], ids=" ".join)
def test_python_examples_pass_ruff(copied: Path, command: list[str]) -> None:
    ruff = str(Path(sys.executable).with_name("ruff"))
    call = [ruff, *command, "--config", str(ROOT / "pyproject.toml"), "--no-cache", str(copied)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
