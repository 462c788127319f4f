"""`ssh` between simulated pods. Succeeds only if the real ssh would, and emulates a few remote commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.sandbox.library import view
from simulator.sandbox.library.ssh_access import SshError, connect

FAILED = 255
FLAGS = "46AaCfGgKkMNnqsTtVvXxYy"


@dataclass(frozen=True)
class Call:
    """A parsed command line, with lower-case option names, since ssh ignores their case."""

    host: str
    command: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def main(arguments: list[str]) -> int:
    try:
        call = parse(arguments)
        pod = connect(view.load(), call.host, call.options)
    except SshError as error:
        print(error, file=sys.stderr)
        return FAILED
    return _run(pod, call.command)


def parse(arguments: list[str]) -> Call:
    """Parses the command line. Raises SshError for unknown options."""
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if all(letter in FLAGS for letter in word[1:]):
            continue
        letter, value = word[1], word[2:] or (rest.pop(0) if rest else "")
        if letter == "o":
            name, _, setting = value.replace("=", " ", 1).partition(" ")
            options[name.lower()] = setting.strip()
        elif letter in "ilpF":
            options[{"i": "identityfile", "l": "user", "p": "port", "F": "configfile"}[letter]] = value
        else:
            raise SshError(f"unknown option -- {letter}\nusage: ssh [-o option] [-p port] [-i file] host [command]")
    if not rest:
        raise SshError("usage: ssh [-o option] [-p port] [-i file] host [command]")
    return Call(rest[0].rpartition("@")[2], tuple(rest[1:]), options)


def _run(pod: view.Pod, command: tuple[str, ...]) -> int:
    words = " ".join(command).split()
    if words in (["true"], [":"], ["exit"], ["exit", "0"]):
        return 0
    if words == ["hostname"]:
        print(pod.hostname)
        return 0
    if words and words[0] == "echo":
        print(*words[1:])
        return 0
    print(
        f"simulator: ssh simulates only the commands true, hostname and echo, not {' '.join(words) or 'a shell'!r}",
        file=sys.stderr,
    )
    return 1
