"""Runs the pulumi CLI in the simulator's environment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator.command import environment
from simulator.command.update_log import UpdateLog
from simulator.host import interrupts, paths

_TICK_S = 1.0
_REST_S = 5.0
"""The time limit to read pulumi's last output: a process that outlives pulumi may keep the pipe open."""


class PulumiFailed(Exception):
    """pulumi failed. The message contains pulumi's output, unless the output was already shown."""


def run(
    *arguments: str,
    stack: str | None = None,
    variables: Mapping[str, str] | None = None,
    blocked: Callable[[], Sequence[str]] = list,
) -> None:
    """Runs pulumi and shows its output. Without a terminal, shows a summary and the lines that `blocked` returns.

    The first interruption goes to pulumi, which finishes pending operations. A second interruption kills pulumi. Raises
    PulumiFailed.
    """
    shown = sys.stdout.isatty()
    log = UpdateLog(_print, blocked)
    with interrupts.held() as let_go:
        pulumi = subprocess.Popen(
            _command(arguments if shown else [*arguments, "--json"], stack),
            env={**environment.environment(), **(variables or {})},
            cwd=paths.ROOT,
            start_new_session=True,  # Ctrl-C reaches only this process, so that pulumi does not count it twice
            stdout=None if shown else subprocess.PIPE,
            text=True,
        )
        reader = threading.Thread(target=log.read, args=(pulumi.stdout or (),), daemon=True)
        reader.start()
        try:
            let_go()
            _wait(pulumi, log)
        except KeyboardInterrupt:
            with interrupts.hastened(lambda: _kill(pulumi)):
                pulumi.send_signal(signal.SIGINT)
                _wait(pulumi, log)
            raise
        finally:
            reader.join(_REST_S)
    if pulumi.returncode < 0:
        by = f"signal {-pulumi.returncode} ({signal.strsignal(-pulumi.returncode)})"
        raise PulumiFailed(
            f"pulumi {arguments[0]} was ended by {by}, which the system may send if memory runs out. Completed changes "
            "stay.\nTo continue, run the same make command again."
        )
    if pulumi.returncode:
        raise PulumiFailed(f"pulumi {arguments[0]} failed; its messages are above.")


def _print(text: str) -> None:
    """Prints the text, even if its reader has ended (`make up | head`): pulumi must finish pending operations."""
    with contextlib.suppress(BrokenPipeError):
        print(text, flush=True)


def _wait(pulumi: subprocess.Popen[str], log: UpdateLog) -> None:
    while pulumi.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            pulumi.wait(_TICK_S)
        log.tick()


def _kill(pulumi: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        os.killpg(pulumi.pid, signal.SIGKILL)


def read(*arguments: str, stack: str | None = None) -> Any:
    """Returns pulumi's parsed JSON output, or None if it is empty. Raises PulumiFailed with pulumi's message."""
    text = quiet(*arguments, stack=stack)
    return json.loads(text) if text.strip() else None


def quiet(*arguments: str, stack: str | None = None, stdin: str | None = None) -> str:
    """Returns pulumi's output. Raises PulumiFailed with pulumi's message."""
    answer = subprocess.run(
        _command(arguments, stack),
        env=environment.environment(),
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        input=stdin,
        check=False,
    )
    if answer.returncode:
        raise PulumiFailed(answer.stderr.strip() or answer.stdout.strip())
    return answer.stdout


def _command(arguments: Sequence[str], stack: str | None) -> list[str]:
    chosen = ["--stack", stack] if stack else []
    return [str(paths.tool("pulumi")), *arguments, *chosen, "--non-interactive"]
