"""Assigns this checkout's ports on 127.0.0.1. `ports.json` keeps them across restarts."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.host import files, paths

_KERNELS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The kernel's range of ports for outgoing connections. These ports may be in use at the next start."""
_LOWEST, _END = 10_000, 65_536
_ENDING_S = 10


class PortTaken(Exception):
    """Another process uses a chosen or previously assigned port."""


def port(name: str) -> int:
    """Returns the port `name` (`arm`, `dev.apiserver`, ..).

    `SIMULATOR_ARM_PORT` or `SIMULATOR_APISERVER_PORT` overrides these two. Raises PortTaken for an invalid variable, or
    if no port is free. Never assigns a port twice.
    """
    if chosen := _chosen(_variable(name)):
        return chosen
    with _one_at_a_time() as file:
        ports = _read(file)
        if name not in ports:
            ports[name] = free(set())
            _write(file, ports)
        return ports[name]


def require_free(name: str) -> int:
    """Returns the port for the process that will listen on it. Stores a port that the user chose.

    Raises PortTaken, with the fix, if the port is in use.
    """
    number = port(name)
    _probe(number, name, _variable(name))
    with _one_at_a_time() as file:
        ports = _read(file)
        if ports.get(name) != number:
            _write(file, ports | {name: number})
    return number


def check_chosen() -> None:
    """Raises PortTaken for the first `SIMULATOR_..._PORT` that is invalid or in use, before anything starts."""
    for variable in sorted(os.environ):
        if variable.startswith("SIMULATOR_") and variable.endswith("_PORT") and (number := _chosen(variable)):
            _probe(number, variable.removeprefix("SIMULATOR_").removesuffix("_PORT").lower(), variable)


@contextmanager
def _one_at_a_time() -> Iterator[Path]:
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield file


def _file() -> Path:
    return paths.home() / "ports.json"


def _read(file: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _write(file: Path, ports: dict[str, int]) -> None:
    files.replace(file, json.dumps(ports, indent=1, sort_keys=True))


def _probe(number: int, name: str, variable: str) -> None:
    """Raises PortTaken if the port is in use. Waits for a port whose process is ending: it has no owner in /proc."""
    deadline = time.monotonic() + _ENDING_S
    while not _is_free(number):
        owner = _owner(number)
        if owner or time.monotonic() > deadline:
            raise PortTaken(_taken(number, name, variable, owner))
        time.sleep(0.1)


def _is_free(number: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
    return True


def _variable(name: str) -> str:
    return f"SIMULATOR_{name.rsplit('.', 1)[-1].replace('-', '_').upper()}_PORT"


def _chosen(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 1024 <= int(text) <= 65535):
        raise PortTaken(f"{variable}={text} is not a valid port: set a number from 1024 to 65535, or unset it.")
    return int(text)


def _taken(number: int, name: str, variable: str, owner: str) -> str:
    fix = (
        f"set {variable} to a free one, or unset it"
        if _chosen(variable)
        else f"end that process, or delete {paths.home().name}/ports.json to choose new ports"
    )
    return f"Port {number} (for {name}) on 127.0.0.1 is taken by another process{owner}: {fix}."


def _owner(number: int) -> str:
    """Returns the listener's name and id, if /proc shows them (it hides other users' processes)."""
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
    """Returns a free port that is not assigned yet, outside the kernel's range for outgoing connections.

    Raises PortTaken.
    """
    kept = avoid | set(_read(_file()).values())
    given_from = int(_KERNELS_OWN.read_text().split()[0])
    allowed = range(_LOWEST, given_from if given_from > _LOWEST else _END)
    start = secrets.randbelow(len(allowed))  # so that checkouts choose different ports, even while stopped
    for number in itertools.chain(allowed[start:], allowed[:start]):
        if number not in kept and _is_free(number):
            return number
    raise PortTaken(f"No port from {allowed.start} to {allowed.stop - 1} is free on 127.0.0.1: end some listeners.")
