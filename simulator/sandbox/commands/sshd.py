"""`sshd`: publishes the container's ports, keys and NCCL files, and runs MPI ranks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from simulator.sandbox.library import keys, ranks, topology, view
from simulator.sandbox.library.nccl_net import nccl_configuration
from simulator.sandbox.library.ssh_access import FOLDER, PORT

FLAGS_WITH_VALUE = "CcEfghopu"
SEPARATION = Path("/run/sshd")


def main(arguments: list[str]) -> int:
    """Serves until the process is killed. If it forks into the background, the foreground returns immediately."""
    flags, port = "", PORT
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        letter = word[1:2]
        if not word.startswith("-") or not letter:
            print(f"sshd: unexpected argument {word!r}", file=sys.stderr)
            return 1
        if letter in FLAGS_WITH_VALUE:
            value = word[2:] or (rest.pop(0) if rest else "")
            port = int(value) if letter == "p" else port
        else:
            flags += word[1:]
    if not SEPARATION.is_dir():
        print(f"Missing privilege separation directory: {SEPARATION}", file=sys.stderr)
        return 255
    state = _state(port)
    if "t" in flags:
        return 0
    view.publish("sshd", state)
    with view.hold("sshd"):
        if "e" in flags:
            print(f"Server listening on 0.0.0.0 port {port}.", file=sys.stderr)
        if not set("Dd") & set(flags) and os.fork():
            return 0
        ranks.serve()
    return 0


def _state(port: int) -> dict[str, Any]:
    known = FOLDER / "authorized_keys"
    return {
        "port": port,
        "authorized_keys": keys.authorized(known.read_text()) if known.exists() else [],
        "nccl_conf": nccl_configuration(),
        "topologies": topology.found_in(view.load_self()["mounts"]),
    }
