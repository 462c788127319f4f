"""Starts and stops the simulator, deploys and destroys stacks on it, and injects faults into nodes and Azure."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import httpx
from rich.console import Console

from config.data.content_tags import UnknownImage
from simulator.azure.store import BadRecords
from simulator.command import daemon_state, environment, evictions, faults, images, owner, stacks, updates
from simulator.host import paths, ports
from simulator.host.processes import end_leftovers, marked_environment
from simulator.kube.client import ApiError
from simulator.tools.progress import Progress
from simulator.world.faults import FaultError

_GIB = 2**30
_SPACE_GIB = 1
"""The free disk space to require. A cluster's etcd and logs take 0.2 to 0.5 GiB."""
_NEEDED = ("pulumi", "helm", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""Tools that every start needs."""
_ENTERED = ("up", "down")
"""Commands whose only option is `--inside`, the virtual network in which they run."""
_INSIDE = "act as a machine in this virtual network: its name, group or stack"
_START_TIMEOUT_S = 200
_STOP_TIMEOUT_S = 60
console = Console(stderr=True)


class Refused(Exception):
    """The command cannot run. The message has the reason and the fix."""


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        owner.claim()
        enter(options.inside)
        return int(options.run(options) or 0)
    except (Refused, BadRecords, FaultError, owner.Foreign, ports.PortTaken, FileNotFoundError) as error:
        return _failed(str(error))
    except PermissionError as error:
        return _failed(owner.not_allowed(error))
    except BrokenPipeError:  # the reader of the pipe ended (`make env | head`); Python flushes stdout at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (ApiError, httpx.HTTPError) as error:
        return _failed(
            f"the simulated cluster does not answer: {error}\n"
            "To see what runs: make status. To restart it without losing state: make stop, then the same command."
        )


def enter(text: str | None) -> None:
    if not text:
        return
    from simulator.command import networks  # the import takes a second

    found = networks.find(text)
    if len(found) != 1:
        known = found or networks.find("")
        listed = (
            "".join(f"\n  --inside {label}" for label in known)
            or "\n  none yet; `pulumi up` creates the network of a stack"
        )
        what = "several virtual networks match" if found else "no virtual network matches"
        raise Refused(f"{what} {text} in simulated Azure. The networks are:{listed}")
    os.environ[environment.INSIDE] = found[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.set_defaults(inside=None)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, text in (
        ("start", start, "start the simulated Azure of this checkout"),
        ("stop", stop, "stop the simulator and keep its state"),
        ("status", show_status, "show what runs, and its state"),
        ("up", bring_up, "pulumi up of the stack, then wait for its jobs"),
        ("down", take_down, "destroy the stack and stop"),
        ("clean", clean, "remove all state of this checkout's simulator"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(run=lambda _, run=run: run())
        if name in _ENTERED:
            command.add_argument("--inside", metavar="NETWORK", help=_INSIDE)
    for name, enter_as, text in (
        ("shell", shell, "start a shell where pulumi, kubectl and helm use the simulator"),
        ("env", show_environment, "print shell lines that set the simulator's environment"),
    ):
        entering = commands.add_parser(name, help=text)
        entering.add_argument("--inside", metavar="NETWORK", help=_INSIDE)
        entering.add_argument("--stack", help="select this stack and its cluster, only in that shell")
        entering.set_defaults(run=lambda options, run=enter_as: run(options.stack))
    pushing = commands.add_parser("images", help="register the images of docker/ in the simulated registries")
    pushing.add_argument("images", nargs="*", metavar="NAME", help="only these")
    pushing.set_defaults(run=lambda options: push_images(options.images))
    faults.add_parsers(commands)
    evictions.add_parser(commands)
    return parser


def _wide() -> Console:
    """Returns a console that does not cut names in pipes, because users copy names."""
    console = Console()
    return console if console.is_terminal else Console(width=200)


def _failed(text: str) -> int:
    console.print("[red]error:[/]", end=" ")
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 1


def start() -> None:
    """Starts the daemon unless it runs. Returns when simulated Azure answers and its clusters are ready."""
    running = daemon_state.running_state()
    if running and running.get("port", ports.port("arm")) != ports.port("arm"):
        raise Refused(f"the simulator already runs at port {running['port']}. To change the port, first: make stop")
    if running and "pid" in running and running.get("code") != daemon_state.code():
        _require_idle("restart, because the code of this checkout has changed")
        console.print("the code of this checkout has changed: the simulator restarts and keeps its state")
        stop()
        running = None
    process = _launch() if running is None else None
    began = time.time()
    with Progress().showing(lambda: ("starting the simulator", began)):
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not (daemon_state.running_state() or {}).get("ready"):
            if process is not None and process.poll() is not None and daemon_state.running_state() is None:
                raise Refused(f"the simulator did not start:\n{_log().read_text().strip()}")
            if time.monotonic() > deadline:
                raise Refused(f"the simulator did not start within {_START_TIMEOUT_S} s; see {_log()}")
            time.sleep(0.1)
    console.print("the simulator runs")


def _log() -> Path:
    return paths.home() / "daemon.log"


def _launch() -> subprocess.Popen[bytes]:
    for tool in _NEEDED:
        paths.tool(tool)
    ports.check_chosen()
    ports.require_free("arm")
    _require_space()
    log = _log()
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with log.open("wb") as sink:
        return subprocess.Popen(
            [sys.executable, "-m", "simulator.command.daemon"],
            cwd=paths.ROOT,
            env=_daemon_environment(),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )


def _require_idle(planned: str) -> None:
    """Raises Refused while another process updates a stack of this checkout."""
    if working := updates.under_way():
        pids = " ".join(sorted({str(update.pid) for update in working}))
        raise Refused(
            "\n  ".join([f"the simulator would {planned}, and break a running update:", *map(str, working)])
            + f"\n  fix: wait for the update, or interrupt it (kill -INT {pids}); then run the same command again"
        )


def stop() -> None:
    _require_idle("stop")
    state = daemon_state.running_state()
    if state is not None and state.get("pid"):
        began = time.time()
        with Progress().showing(lambda: ("stopping the simulator", began)):
            os.kill(int(str(state["pid"])), signal.SIGTERM)
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while daemon_state.running_state() is not None and time.monotonic() < deadline:
                time.sleep(0.1)
    if pids := end_leftovers():
        raise Refused(f"processes {pids} of this simulator do not end, even after SIGKILL")
    console.print("the simulator is stopped")


def show_status() -> int:
    from simulator.command import status  # the import takes a second

    return status.show(_wide())


def show_environment(stack: str | None) -> None:
    _require_usable(stack)
    print(environment.shell_lines(_selected(stack)))


def _require_usable(stack: str | None) -> None:
    if stack is not None and (problem := stacks.problem(stack)):
        raise Refused(problem)


def _selected(stack: str | None) -> dict[str, str]:
    if stack is None:
        return {}
    with _stack_commands() as commands:
        variables, line = commands.select(stack)
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    return dict(variables)


def shell(stack: str | None) -> int:
    """Starts a shell. If a stack is given, selects the stack and its cluster in the new shell only."""
    _require_usable(stack)
    start()
    chosen = _selected(stack)
    program = os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"
    inside = os.environ.get(environment.INSIDE)
    console.print("pulumi, kubectl and helm use only the simulator in this shell; to leave it: exit")
    if inside:
        console.print(f"this shell acts as a machine in the virtual network {inside}", markup=False)
    env = environment.environment() | chosen | {"PS1": f"({inside or 'simulator'}) \\w $ ", "SIMULATOR_SHELL": "1"}
    if stack is None:
        env.pop("STACK", None)  # the Makefile's default: a `make shell` in this shell would select it
    return subprocess.run(
        [program, "--norc"] if program.endswith("bash") else [program], env=env, check=False
    ).returncode


def clean() -> None:
    stop()
    try:
        shutil.rmtree(paths.home())
    except OSError as error:
        raise Refused(
            f"the state in {paths.home()} cannot be removed: {error}\n  fix: sudo rm -r {paths.home()}"
        ) from error
    console.print("removed the simulator's state; tools stay in the cache")


def bring_up() -> None:
    if problem := stacks.problem(stacks.chosen()):
        raise Refused(problem)
    start()
    with updates.announced("make up", stacks.chosen()), _stack_commands() as commands:
        commands.up()


def push_images(names: Sequence[str]) -> None:
    """Registers images in the simulated registries without a build and push, even if the simulator is stopped."""
    try:
        pushed = images.push_all(names=names)
    except UnknownImage as error:
        raise Refused(str(error)) from None
    if not pushed:
        raise Refused("simulated Azure has no registry. To create the stack's registry: make up")
    for registry, new in pushed.items():
        which = "these images" if names else "all images"
        console.print(f"{registry}.azurecr.io has {which} of docker/; new: {', '.join(new) or 'none'}")


def take_down() -> None:
    stack = stacks.chosen()
    with _stack_commands() as commands:
        commands.require_known(stack)
        start()
        with updates.announced("make down", stack):
            others = commands.down()
    if others or updates.under_way():
        console.print("the simulator keeps running for these stacks; to stop it: make stop")
    else:
        stop()


@contextmanager
def _stack_commands() -> Iterator[ModuleType]:
    """Yields the module `simulator.command.up`, whose import takes a second."""
    from simulator.command import up

    try:
        yield up
    except up.UpFailed as error:
        raise Refused(str(error)) from error


def _require_space() -> None:
    home = paths.home().resolve()
    disk = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(disk).free / _GIB
    if free < _SPACE_GIB:
        raise Refused(
            f"not enough disk space in {home}: {free:.1f} GiB are free, {_SPACE_GIB} GiB are needed for the clusters' "
            "data and logs.\nFree some space, or set another folder: SIMULATOR_HOME=<folder on a larger disk> <command>"
        )


def _daemon_environment() -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if key.startswith(("SIMULATOR_", "AI_ON_AKS_", "XDG_"))}
    own[environment.OUTER] = environment.outer_proxy()
    return marked_environment(own | {"PYTHONPYCACHEPREFIX": str(paths.bytecode()), "PYTHONUNBUFFERED": "1"})
