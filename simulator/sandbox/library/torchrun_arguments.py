"""The command line of torchrun (torch.distributed.run)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

DEFAULT_PORT = 29400
DEFAULT_TIMEOUT_S = 600  # of a static rendezvous


class UsageError(Exception):
    """A command line that torchrun refuses."""


@dataclass(frozen=True)
class Launch:
    """One agent's part of a launch."""

    nodes: int
    per_node: int
    rank: int
    """Of the node."""
    host: str
    port: int
    identity: str
    timeout: int
    """Seconds to wait for the other agents."""
    program: Sequence[str]
    module: bool = False
    """It begins with the name of a module, not with a path."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(arguments: Sequence[str]) -> Launch:
    """Static rendezvous only, which the node ranks of an Indexed Job are made for. Raises UsageError."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name, default in {
        "nnodes": "1:1",
        "nproc-per-node": "1",
        "node-rank": "0",
        "rdzv-backend": "static",
        "rdzv-endpoint": "",
        "rdzv-id": "none",
        "rdzv-conf": "",
        "master-addr": "127.0.0.1",
        "master-port": str(DEFAULT_PORT),
    }.items():
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default=default)
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if not options.program:
        raise UsageError("the following arguments are required: training_script, training_script_args")
    if options.rdzv_backend != "static":
        raise UsageError(f"simulator: the rendezvous backend {options.rdzv_backend} is not simulated, static is")
    host, _, port = (options.rdzv_endpoint or f"{options.master_addr}:{options.master_port}").partition(":")
    settings = dict(entry.partition("=")[::2] for entry in options.rdzv_conf.split(",") if entry)
    least, _, most = options.nnodes.partition(":")
    if most and most != least:
        raise UsageError("static rendezvous needs a fixed number of nodes")
    launch = Launch(
        nodes=_number("nnodes", least),
        per_node=_number("nproc-per-node", options.nproc_per_node),
        rank=_number("node-rank", options.node_rank),
        host=host,
        port=_number("port", port or str(DEFAULT_PORT)),
        identity=options.rdzv_id,
        timeout=_number("timeout", settings.get("timeout", str(DEFAULT_TIMEOUT_S))),
        program=tuple(options.program),
        module=options.module,
    )
    if launch.rank >= launch.nodes:
        raise UsageError(f"node rank {launch.rank} is not one of {launch.nodes} nodes")
    return launch


def _number(name: str, text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"argument --{name}: invalid int value: '{text}'")
    return int(text)
