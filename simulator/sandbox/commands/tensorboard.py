"""`tensorboard`: 2.8.0, as metaseq's setup.py pins it, with the command line of its core plugin (core_plugin.py)."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence
from pathlib import Path

from simulator.sandbox.library import scalars
from simulator.sandbox.library.dashboard import Dashboard, Query
from simulator.sandbox.library.scalars import Run

VERSION = "2.8.0"
DEFAULT_PORT = 6006
PLUGIN = "/data/plugin/scalars"
WITHOUT_EFFECT = """
    load_fast max_reload_threads purge_orphaned_data reload_interval reload_multifile reload_multifile_inactive_secs
    reload_task samples_per_plugin window_title
"""
NOT_SIMULATED = "db event_file logdir_spec path_prefix reuse_port tag grpc_data_provider"
NOT_SIMULATED_SWITCHES = "db_import inspect version_tb"


class FlagsError(Exception):
    """Flags that exclude each other; ends it with 1."""


def main(arguments: list[str]) -> int:
    """Does not return before it is ended, unless it cannot serve."""
    try:
        options = parse(arguments)
    except FlagsError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    folder = Path(options.logdir).expanduser()
    data = {"/data/runs": _runs, f"{PLUGIN}/tags": _tags, f"{PLUGIN}/scalars": _scalars}
    host = "0.0.0.0" if options.bind_all else options.host or "localhost"  # noqa: S104 - asked for
    try:
        server = Dashboard("TensorBoard", lambda: scalars.event_runs(folder), data).server(host, options.port)
    except OSError as error:
        print(f"ERROR: {_refusal(error, host, options.port)}", file=sys.stderr)
        return 255
    if options.host is None and not options.bind_all:
        note = "Serving TensorBoard on localhost; to expose to the network, use a proxy or pass --bind_all"
        print(note, file=sys.stderr)
    shown = "localhost" if options.bind_all else host
    print(f"TensorBoard {VERSION} at http://{shown}:{server.server_port}/ (Press CTRL+C to quit)", file=sys.stderr)
    server.serve_forever()
    return 0


def parse(arguments: list[str]) -> argparse.Namespace:
    """As argparse does, ends the process with 2 for what it does not know. Raises FlagsError."""
    parser = argparse.ArgumentParser(prog="tensorboard", usage="tensorboard [-h] [--logdir PATH] ...")
    parser.add_argument("serve", nargs="?", choices=["serve"])
    parser.add_argument("--logdir", default="")
    parser.add_argument("--host")
    parser.add_argument("--bind_all", action="store_true")
    parser.add_argument("--port", type=lambda text: DEFAULT_PORT if text == "default" else int(text), default="default")
    for name in (WITHOUT_EFFECT + NOT_SIMULATED).split():
        parser.add_argument(f"--{name}")
    for name in NOT_SIMULATED_SWITCHES.split():
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args(arguments)
    for name in f"{NOT_SIMULATED} {NOT_SIMULATED_SWITCHES}".split():
        if getattr(options, name):
            raise FlagsError(f"simulator: tensorboard is simulated with --logdir, not with --{name}")
    if not options.logdir:
        raise FlagsError("A logdir or db must be specified. For example `tensorboard --logdir mylogdir`.")
    if options.host is not None and options.bind_all:
        raise FlagsError("Must not specify both --host and --bind_all.")
    return options


def _refusal(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"TensorBoard could not bind to port {port}, it was already in use"
    return f"TensorBoard could not bind to unavailable address {host}"


def _runs(runs: Sequence[Run], _: Query) -> object:
    return [run.name for run in runs]


def _tags(runs: Sequence[Run], _: Query) -> object:
    return {run.name: {name: {"displayName": "", "description": ""} for name in run.curves} for run in runs}


def _scalars(runs: Sequence[Run], query: Query) -> object:
    """Points of one scalar of one run (scalars_plugin.py)."""
    name, tag = query["run"], query["tag"]
    return {run.name: run.curves for run in runs}[name][tag]
