"""The tests use the built tools' help. tests/contract/azure_cli checks `az` with the Azure CLI's parser."""

from __future__ import annotations

import functools
import re
import subprocess

import pytest

from simulator.host import paths
from tests.support.printed_commands import FILLED_IN, Command, commands

PROSE = {"cannot", "ended", "in", "is", "itself", "makes", "merges", "reported", "was"}
"""Words that follow a tool's name in prose."""
CHECKED = [command for command in commands() if command.words[0] != "az" and command.words[1] not in PROSE]
_COMMANDS = re.compile(r"^ {2,4}([a-z][a-z-]+)(?: |$)", re.MULTILINE)
_SHORT = re.compile(r"(?<![\w-])-([a-zA-Z0-9])(?![\w-])")


@functools.cache
def help_of(*words: str) -> str:
    """Kubectl prints the parent's help for unknown commands."""
    argv = [str(paths.tool(words[0])), *words[1:], "--help"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60).stdout
    return shown if words[0] != "kubectl" or len(words) > 1 else f"{shown}\n{options()}"


@functools.cache
def options() -> str:
    return subprocess.run([str(paths.tool("kubectl")), "options"], capture_output=True, text=True, check=True).stdout


def subcommands(*words: str) -> set[str]:
    listed = re.findall(r"^[\w -]*[Cc]ommands?[\w ()-]*:\n((?:(?: {2}.*)?\n)+)", help_of(*words), re.MULTILINE)
    return {name for text in listed for name in _COMMANDS.findall(text)}


def split(command: Command) -> tuple[tuple[str, ...], tuple[str, ...]]:
    path: tuple[str, ...] = command.words[:1]
    for word in command.words[1:]:
        if word not in subcommands(*path) and not is_alias(*path, word):
            break
        path += (word,)
    return path, command.words[len(path) :]


def is_alias(*words: str) -> bool:
    """Returns whether the help lists the last word as an alias, like `pulumi stack init`."""
    aliases = re.search(r"^Aliases:\n +(.+)", help_of(*words), re.MULTILINE) if words[-1].isalpha() else None
    return aliases is not None and words[-1] in aliases[1].split(", ")


@pytest.mark.simulator
@pytest.mark.parametrize("command", CHECKED, ids=str)
def test_the_command_and_its_flags_exist(command: Command) -> None:
    path, rest = split(command)
    assert len(path) > 1, f"{command.words[0]} has no command {command.words[1]}"
    assert not (subcommands(*path) and rest and not rest[0].startswith("-")), (
        f"{' '.join(path)} has no command {rest[0]}"
    )
    flags = rest[: rest.index("--")] if "--" in rest else rest
    text = f"{help_of(*path)}\n{options()}\n--help" if path[0] == "kubectl" else help_of(*path)
    long = {flag.split("=")[0].removesuffix(FILLED_IN) for flag in flags if flag.startswith("--")}
    assert {flag for flag in long if not re.search(rf"{flag}\b", text)} == set()
    short = {letter for flag in flags if re.fullmatch(r"-[a-zA-Z]+", flag) for letter in flag[1:]}
    assert short - set(_SHORT.findall(text)) == set()
