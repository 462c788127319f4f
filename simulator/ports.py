"""Ports of this checkout on 127.0.0.1: chosen once, kept in `ports.json`, so that a restart changes no address."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from simulator import paths


class PortTaken(Exception):
    """A port that was asked for, or was used before, belongs to somebody else now."""


def port(name: str) -> int:
    """The port called `name` (`arm`, `dev.apiserver`, ...); `SIMULATOR_<NAME>_PORT` (last word of the name) chooses it.

    Raises PortTaken only through `require_free`; choosing never hands out a port twice.
    """
    file = paths.home() / "ports.json"
    ports: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    chosen = _chosen(name) or ports.get(name) or free(set(ports.values()))
    if ports.get(name) != chosen:
        ports[name] = chosen
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(ports, indent=1, sort_keys=True))
        partial.replace(file)
    return chosen


def require_free(name: str) -> int:
    """As `port`, and raises PortTaken, saying how to mend it, if something already listens there."""
    number = port(name)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError as error:
            raise PortTaken(_taken(name, number)) from error
    return number


def _variable(name: str) -> str:
    return f"SIMULATOR_{name.rsplit('.', 1)[-1].replace('-', '_').upper()}_PORT"


def _chosen(name: str) -> int | None:
    text = os.environ.get(_variable(name), "")
    if not text:
        return None
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise PortTaken(f"{_variable(name)}={text} is no port: set a number from 1024 to 65535, or unset it.")
    return int(text)


def _taken(name: str, number: int) -> str:
    mend = (
        f"set {_variable(name)} to a free one, or unset it"
        if _chosen(name)
        else f"end what listens there, or delete {paths.home().name}/ports.json to have new ports chosen"
    )
    return f"Port {number} (for {name}) on 127.0.0.1 is taken by another process{_owner(number)}: {mend}."


def _owner(number: int) -> str:
    """Name and id of the listener, where /proc tells (other users' processes stay unnamed)."""
    wanted = f"0100007F:{number:04X}"
    anywhere = f"00000000:{number:04X}"
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] in (wanted, anywhere) and fields[3] == "0A":
            inodes.add(f"socket:[{fields[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in inodes:
                pid = link.parts[2]
                return f" ({Path('/proc', pid, 'comm').read_text().strip()}, pid {pid})"
        except OSError:
            continue
    return ""


def free(avoid: set[int]) -> int:
    """A port that nobody listens on now."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            number: int = probe.getsockname()[1]
        if number not in avoid:
            return number
