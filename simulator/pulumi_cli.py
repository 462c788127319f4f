"""Calls of the pulumi CLI in the simulator's environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from simulator import environment, paths


class PulumiFailed(Exception):
    """pulumi ended with an error; what it printed was shown, or is the message."""


def run(*arguments: str, stack: str | None = None, variables: Mapping[str, str] | None = None) -> None:
    """Shows what pulumi prints, with `variables` in its environment. Raises PulumiFailed.

    An interruption is passed on once, upon which pulumi ends what it has begun; a second one kills it.
    """
    pulumi = subprocess.Popen(
        _command(arguments, stack),
        env={**environment.environment(), **(variables or {})},
        cwd=paths.ROOT,
        start_new_session=True,  # the terminal's Ctrl-C reaches us only, so that pulumi does not count it twice
    )
    try:
        pulumi.wait()
    except KeyboardInterrupt:
        pulumi.send_signal(signal.SIGINT)
        try:
            pulumi.wait()
        except KeyboardInterrupt:
            os.killpg(pulumi.pid, signal.SIGKILL)
            pulumi.wait()
        raise
    if pulumi.returncode:
        raise PulumiFailed(f"pulumi {arguments[0]} failed; its messages are above.")


def read(*arguments: str, stack: str | None = None) -> Any:
    """The JSON that pulumi prints. Raises PulumiFailed with its message."""
    text = quiet(*arguments, stack=stack)
    return json.loads(text) if text.strip() else None


def quiet(*arguments: str, stack: str | None = None, stdin: str | None = None) -> str:
    """What pulumi prints. Raises PulumiFailed with its message."""
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
