"""Runs one container (thread, host process or script) once and returns its exit code."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import httpx

from k8s.objects import Object
from simulator.host import paths
from simulator.host.processes import marked_environment
from simulator.kube.client import ApiError
from simulator.kubelet import events
from simulator.kubelet.context import ContainerContext
from simulator.kubelet.programs import Controller, HostProcess, OneShot
from simulator.kubelet.shim_client import Shim, ShimError

_PLACES = ("AI_ON_AKS_CACHE", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX", "GO")
"""Prefixes of environment variables that builds of tools get."""
EXIT_START_ERROR = 128  # container runtimes' exit code for a failed start
_OUTPUT_S = 5
"""Seconds to read output after a process has ended."""
_POLL_S = 0.1
STUBBED_S = 1.0
"""Seconds until a stubbed container of a Job ends, as in KWOK (cluster/stages.yaml)."""


@dataclass(frozen=True)
class Script:
    """A container of an image that runs as scripts in a sandbox."""

    command: Callable[[ContainerContext], tuple[Sequence[str], Mapping[str, str]]]
    """Prepares the sandbox. Returns its argv and environment. Raises ValueError if the sandbox cannot start."""
    shim: Callable[[ContainerContext], Shim]
    tools: tuple[str, ...] = ()


class Stop(threading.Event):
    """An event that asks a container to end. If `lost` is set first, because the node is down, kills it at once."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = threading.Event()


Runnable = Controller | OneShot | HostProcess | Script | None
Prepared = TypeVar("Prepared")


def termination_grace_s(pod: Object) -> int:
    return int(pod["spec"].get("terminationGracePeriodSeconds", 30))


def _is_of_job(pod: Object) -> bool:
    """Returns whether the pod belongs to a Job of Kubernetes or Volcano."""
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", []))


def run(ctx: ContainerContext, program: Runnable, stop: Stop, ready: Callable[[], None]) -> int:
    """Runs the container until it ends or `stop` is set. Calls `ready` when it serves. Returns its exit code."""
    try:
        if isinstance(program, HostProcess | Script) and (code := _make_tools(ctx, program.tools, stop)):
            return code
        if isinstance(program, HostProcess):
            ports = program.ports(ctx)
            argv = _retried(lambda: program.argv(ctx), stop)
            own = marked_environment(_retried(ctx.env, stop))
            return _process(ctx, argv, own, stop, lambda: _serving(ports, ready, stop))
        if isinstance(program, Script):
            command, env = _retried(lambda: program.command(ctx), stop)
            return _process(ctx, command, env, stop, ready, functools.partial(_terminate_script, program.shim(ctx)))
        ready()
        if isinstance(program, OneShot):
            program.run(ctx)
            return 0
        if isinstance(program, Controller):
            program.run(ctx, stop)
        elif not stop.wait(STUBBED_S if _is_of_job(ctx.pod) else None):
            return 0
    except ValueError as error:
        ctx.log(f"cannot start: {error}")
        return EXIT_START_ERROR
    except Exception:  # noqa: BLE001 - the container fails, and its log has the error
        ctx.log(traceback.format_exc())
        return 1
    return 128 + signal.SIGTERM


def _retried(prepare: Callable[[], Prepared], stop: Stop) -> Prepared:
    """Retries while the API server restarts, so that no container fails."""
    while True:
        try:
            return prepare()
        except (ApiError, httpx.HTTPError) as error:
            if stop.wait(_POLL_S) or not (isinstance(error, httpx.HTTPError) or error.passing):
                raise


def _make_tools(ctx: ContainerContext, names: Sequence[str], stop: Stop) -> int:
    missing = [name for name in names if not (paths.tools_bin() / name).exists()]
    if not missing:
        return 0
    command = [sys.executable, "-m", "simulator.tools", "--only", ",".join(missing)]
    message = f"the simulator has no {', '.join(missing)} yet, and builds it once: {shlex.join(command[1:])}"
    ctx.log(message)
    events.warn(ctx.volumes.kube, ctx.pod, "ToolMissing", f"{message}. The container's log shows the progress")
    places = {name: value for name, value in os.environ.items() if name.startswith(_PLACES)}
    environment = marked_environment({"PYTHONPATH": str(paths.ROOT), **places})
    return _process(ctx, command, environment, stop, lambda: None)


def _process(
    ctx: ContainerContext,
    argv: Sequence[str],
    env: Mapping[str, str],
    stop: Stop,
    started: Callable[[], None],
    terminate: Callable[[subprocess.Popen[str]], None] | None = None,
) -> int:
    ctx.logfile.begin()
    popen = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(env),
        text=True,
        errors="replace",
        start_new_session=True,
    )
    reader = threading.Thread(target=_copy_output, args=(popen, ctx), daemon=True)
    reader.start()
    threading.Thread(target=started, daemon=True).start()
    while popen.poll() is None and not stop.wait(_POLL_S):
        pass
    if popen.poll() is None:
        if not stop.lost.is_set():
            (terminate or _terminate)(popen)
        _end(popen, termination_grace_s(ctx.pod), stop)
    reader.join(_OUTPUT_S)
    code = popen.returncode
    return 128 - code if code < 0 else code


def _copy_output(popen: subprocess.Popen[str], ctx: ContainerContext) -> None:
    if popen.stdout is not None:
        with popen.stdout as lines:
            for line in lines:
                ctx.log(line.rstrip("\n"))


def _terminate_script(shim: Shim, popen: subprocess.Popen[str]) -> None:
    """Ends the container's command by SIGTERM. The sandbox then ends too."""
    try:
        shim.signal(signal.SIGTERM)
    except ShimError:  # already ending
        _terminate(popen)


def _terminate(popen: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGTERM)


def _end(popen: subprocess.Popen[str], grace_s: int, stop: Stop) -> None:
    deadline = time.monotonic() + grace_s
    while popen.poll() is None and time.monotonic() < deadline and not stop.lost.wait(_POLL_S):
        pass
    if popen.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()


def _serving(ports: Mapping[int, int], ready: Callable[[], None], stop: Stop) -> None:
    waiting = set(ports.values())
    while waiting and not stop.is_set():
        for port in list(waiting):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    waiting.discard(port)
        time.sleep(_POLL_S)
    if not stop.is_set():
        ready()
