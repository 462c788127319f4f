"""`aim up`: 3.17.5, as docker/metaseq installs it, with its command line (aim/cli/up/commands.py) as click reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from simulator.sandbox.library import scalars
from simulator.sandbox.library.dashboard import Dashboard

SHORT = {"-h": "--host", "-p": "--port", "-w": "--workers"}
VALUES = ("--host", "--port", "--workers", "--repo", "--log-level")
SWITCHES = ("--force-init",)
NOT_SIMULATED = (
    "--uds",
    "--tf_logs",
    "--ssl-keyfile",
    "--ssl-certfile",
    "--base-path",
    "--dev",
    "--profiler",
    "--help",
)
NUMBERS = ("--port", "--workers")
DEFAULTS = {"--host": "127.0.0.1", "--port": "43800", "--repo": "."}
BAD_USAGE = 2


class UsageError(Exception):
    """A command line that is not understood; ends it with 2."""


def main(arguments: list[str]) -> int:
    """Does not return before it is ended, unless it cannot serve; the exit code is then the real one's."""
    if arguments[:1] != ["up"]:
        wrong = f"No such command '{arguments[0]}'." if arguments else "Missing command."
        return _usage("aim", "COMMAND [ARGS]...", f"{wrong} (simulator: only `aim up` is simulated)")
    try:
        options = parse(arguments[1:])
    except UsageError as error:
        return _usage("aim up", "", str(error))
    repository = Path(options["--repo"]).resolve()
    found = scalars.AIM_RUNS.parts[0]
    if not (repository / found).exists():
        if "--force-init" not in options and (code := _ask(repository)) is not None:
            return code
        (repository / scalars.AIM_RUNS).mkdir(parents=True)
    print(f"Running Aim UI on repo `<Repo#{hash(repository)} path={repository / found} read_only=None>`")
    host, port = options["--host"], int(options["--port"])
    print(f"Open http://{host}:{port}", file=sys.stderr)
    print("Press Ctrl+C to exit")
    try:
        server = Dashboard("Aim", lambda: scalars.aim_runs(repository), {}).server(host, port)
    except OSError as error:
        why = f"[Errno {error.errno}] error while attempting to bind on address ('{host}', {port})"
        print(f"ERROR:    {why}: {(error.strerror or str(error)).lower()}", file=sys.stderr)
        print("Failed to run Aim UI. Please see the logs above for details.")
        return 0
    server.serve_forever()
    return 0


def parse(arguments: list[str]) -> Mapping[str, str]:
    """Options by their long names, with the defaults. Raises UsageError."""
    options = dict(DEFAULTS)
    rest = list(arguments)
    while rest:
        name, given, value = rest.pop(0).partition("=")
        name = SHORT.get(name, name)
        if name in NOT_SIMULATED:
            raise UsageError(f"simulator: {name} is not simulated")
        if not name.startswith("-"):
            raise UsageError(f"Got unexpected extra argument ({name})")
        if name not in VALUES + SWITCHES:
            raise UsageError(f"No such option: {name}")
        if name in VALUES and not given:
            if not rest:
                raise UsageError(f"Option '{name}' requires an argument.")
            value = rest.pop(0)
        if name in NUMBERS and not value.lstrip("-").isdigit():
            raise UsageError(f"Invalid value for '{name[1:3]}' / '{name}': '{value}' is not a valid integer.")
        options[name] = value
    if not Path(options["--repo"]).is_dir():
        wrong = "is a file" if Path(options["--repo"]).exists() else "does not exist"
        raise UsageError(f"Invalid value for '--repo': Directory '{options['--repo']}' {wrong}.")
    return options


def _ask(repository: Path) -> int | None:
    """Asks whether a folder shall become a repository; the exit code unless it shall."""
    while True:
        print(
            f"'{repository}' is not a valid Aim repository. Do you want to initialize it? [y/N]: ", end="", flush=True
        )
        answer = sys.stdin.readline()
        if not answer:
            print("Aborted!", file=sys.stderr)
            return 1
        if answer.strip().lower() in ("y", "yes"):
            return None
        if answer.strip().lower() in ("", "n", "no"):
            print("To initialize repo please run the following command:\naim init")
            return 0
        print("Error: invalid input")


def _usage(command: str, more: str, error: str) -> int:
    usage = f"Usage: {command} [OPTIONS] {more}".rstrip()
    print(f"{usage}\nTry '{command} --help' for help.\n\nError: {error}", file=sys.stderr)
    return BAD_USAGE
