"""Loading all commands of the Azure CLI takes a minute of CPU time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.host import paths
from simulator.tools.packages import packages
from tests.support.printed_commands import FILLED_IN, Command, commands

pytestmark = pytest.mark.long
EXTENSIONS = {("network", "bastion")}
"""Extensions are not installed, because they come from Microsoft."""
PROSE = {"itself"}
PRINTED = [each for each in commands() if each.words[0] == "az" and each.words[1] not in PROSE]
ONE_OF = {("role", "assignment", "create"): ("--assignee", "--assignee-object-id")}
"""A command requires one of these options, which the parser does not check."""


@pytest.fixture(scope="module")
def objections(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], str]:
    folder = tmp_path_factory.mktemp("azure-cli")
    environment = {"PYTHONPATH": str(packages(paths.tools_bin() / "azure-cli")), "AZURE_CONFIG_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("parse.py"))],
        input="\n".join(json.dumps(stated(command)) for command in PRINTED),
        env={**os.environ, **environment, "HOME": str(folder), "AZURE_CORE_COLLECT_TELEMETRY": "no"},
        capture_output=True,
        text=True,
        check=True,
    )
    return {tuple(words): objection for words, objection in map(json.loads, done.stdout.splitlines())}


def stated(command: Command) -> tuple[str, ...]:
    words = command.words
    first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    return (*(word for word in words[:first] if word != FILLED_IN), *words[first:])


def is_complete(command: Command) -> bool:
    """A command without options, or on a page without a placeholder, only mentions a name."""
    is_mention = command.where.endswith(".md") and FILLED_IN not in command.words
    return stated(command) == command.words and any(word.startswith("-") for word in command.words) and not is_mention


@pytest.mark.parametrize("command", PRINTED, ids=str)
def test_the_parser_accepts_the_command(command: Command, objections: dict[tuple[str, ...], str]) -> None:
    words, objection = stated(command), objections[stated(command)].partition("\n\n")[0]
    is_extension = words[1:3] in EXTENSIONS and "misspelled or not recognized" in objection
    is_incomplete = not is_complete(command) and re.search("arguments are required|expected one argument", objection)
    is_filled_in = f"'{FILLED_IN}'" in objection  # the parser compares it with a list
    assert not objection or is_extension or is_incomplete or is_filled_in, objection


@pytest.mark.parametrize("command", [each for each in PRINTED if is_complete(each)], ids=str)
def test_the_command_has_one_of_the_alternatives(command: Command) -> None:
    for name, options in ONE_OF.items():
        assert command.words[1 : 1 + len(name)] != name or set(options) & set(command.words)
