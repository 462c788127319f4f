"""What the pages name is there: make targets, commands, files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from config.facts.language_models import language_models
from simulator.command import cli
from simulator.host.paths import ROOT
from simulator.world.faults import FaultKind
from tests.support.pages import PAGES, code, links

COMMANDS = ROOT / "docs" / "commands.md"
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
"""Beginnings of what looks like a file of the checkout and is none."""
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
SUFFIXES = {".md", ".py", ".yaml", ".yml", ".sh", ".txt", ".in", ".toml"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def targets() -> set[str]:
    """The Makefile's targets that have a description."""
    text = (ROOT / "Makefile").read_text("utf-8")
    return {name for names in re.findall(r"^([a-z -]+):.*##", text, re.MULTILINE) for name in names.split()}


def test_help_has_a_line_for_each_target_and_commands_as_they_are_typed() -> None:
    said = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    declared = (ROOT / "Makefile").read_text("utf-8").partition(".PHONY:")[2].partition("\n\n")[0]
    there = set(declared.replace("\\", " ").split()) - {"stack-file", "own-state"}  # steps of others
    assert {line.partition(" - ")[0] for line in said.splitlines()} == there
    assert 'eval "$(make -s env)"' in said


def make_targets(text: str) -> list[str]:
    """Targets of a `make` call, with which it must begin."""
    words = re.sub(r'^(\$ |eval "\$\()', "", text).split("#")[0].split()
    if words[:1] != ["make"]:
        return []
    return [word.rstrip(')"') for word in words[1:] if not re.match(r"-|[A-Z]+=", word)]


@every_page
def test_make_targets_exist(page: Path) -> None:
    named = [target for text in code(page) for target in make_targets(text)]
    assert not set(named) - targets()


def test_every_make_target_is_among_the_commands() -> None:
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


def test_every_fault_is_among_the_commands() -> None:
    kinds = {kind for text in code(COMMANDS) for kind in re.findall(r"^python -m simulator fault ([a-z][a-z-]+)", text)}
    assert kinds == set(FaultKind)


@every_page
def test_files_exist(page: Path) -> None:
    named = [text for text in code(page) if FILE.fullmatch(text) and ("/" in text or Path(text).suffix in SUFFIXES)]
    named = [text for text in named if not re.fullmatch(r"[0-9.]+/[0-9]+", text)]  # a range of addresses is no file
    missing = [name for name in named if not name.startswith(NOT_HERE) and not (ROOT / name).exists()]
    assert not missing
    assert not [target for target in links(page) if not (page.parent / target).exists()]


@every_page
def test_pages_name_no_place_of_a_machine(page: Path) -> None:
    assert not re.findall(r"(?<![\w.])/(?:root|home|work|Users)/\S*", page.read_text("utf-8"))
