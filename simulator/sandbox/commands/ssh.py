"""`ssh` between simulated pods: succeeds only where the real one would, and runs a few commands in simulated form."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.sandbox.commands import keys, world

PORT = 22
FAILED = 255
FLAGS = "46AaCfGgKkMNnqsTtVvXxYy"
FOLDER = Path("/root/.ssh")


class SshError(Exception):
    """ssh's own complaint; its exit code is 255."""


@dataclass(frozen=True)
class Call:
    """A parsed command line; options have lower-case names, as ssh takes them in any case."""

    host: str
    command: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def main(arguments: list[str]) -> int:
    """The remote command's exit code, or 255."""
    try:
        call = parse(arguments)
        pod = connect(world.load(), call.host, call.options)
    except SshError as error:
        print(error, file=sys.stderr)
        return FAILED
    return _run(pod, call.command)


def parse(arguments: list[str]) -> Call:
    """Raises SshError for options that ssh does not have."""
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


def connect(known: world.World, host: str, options: Mapping[str, str], folder: Path = FOLDER) -> world.Pod:
    """The pod behind the host, if its ssh server would let this pod in. Raises SshError.

    Its words are OpenSSH's (sshconnect.c, ssh_connect_direct; ssh.c, resolve_host) and the C library's for errno.
    """
    settings = {**_configured(folder / "config", host), **options}
    target = settings.get("hostname", host)
    port = int(settings.get("port", PORT))
    pod = known.resolve(target)
    if pod is None and not world.is_address(target):
        raise SshError(f"ssh: Could not resolve hostname {target}: Name or service not known")
    if pod is None or not known.node_of(pod)["ready"]:
        # Not "No route to host": Azure's virtual networks are layer-3 overlays (their FAQ); no ARP goes unanswered.
        raise SshError(f"ssh: connect to host {target} port {port}: Connection timed out")
    if not pod.running or pod.sshd is None or pod.sshd["port"] != port:
        raise SshError(f"ssh: connect to host {target} port {port}: Connection refused")
    if settings.get("stricthostkeychecking", "ask") not in ("no", "off", "accept-new"):
        raise SshError("Host key verification failed.")  # nobody is there to be asked
    if _own_key(Path(settings.get("identityfile", folder / "id_rsa"))) not in pod.sshd["authorized_keys"]:
        raise SshError(f"root@{target}: Permission denied (publickey).")
    return pod


def _own_key(file: Path) -> str | None:
    if not file.exists():
        return None
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        raise SshError(
            f"Permissions 0{mode:o} for '{file}' are too open; ssh ignores private keys that others may read.\n"
            f'Load key "{file}": bad permissions\nPermission denied (publickey).'
        )
    try:
        return keys.public_key(file.read_text())
    except keys.BadKey as error:
        raise SshError(f'Load key "{file}": {error}\nPermission denied (publickey).') from error


def _configured(file: Path, host: str) -> dict[str, str]:
    """Settings of the configuration file for this host; as in ssh, the first value found holds."""
    settings: dict[str, str] = {}
    applies = True
    for line in file.read_text().splitlines() if file.exists() else []:
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name.lower() == "host":
            applies = any(fnmatch.fnmatchcase(host, pattern) for pattern in value.split())
        elif name and not name.startswith("#") and applies:
            settings.setdefault(name.lower(), value.strip())
    return settings


def _run(pod: world.Pod, command: tuple[str, ...]) -> int:
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
        f"simulator: over ssh only true, hostname and echo are simulated, not {' '.join(words) or 'a shell'!r}",
        file=sys.stderr,
    )
    return 1
