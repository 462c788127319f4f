"""The folder in which a tool is built, and the log of the commands there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.tools.errors import ToolError

_LOG_LINES = 15


@dataclass(frozen=True)
class Workspace:
    """The empty `folder` that becomes the tool's folder, the `module` with the pinned versions, and other paths."""

    folder: Path
    module: Path
    log: Path
    go_caches: Path
    kubectl: Path

    def run(
        self,
        failure: str,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        hint: str = "",
    ) -> None:
        """Runs a command. If it fails, raises ToolError with `failure`, the log's end and `hint`."""
        with self.log.open("wb") as output:
            code = _wait(command, cwd, environment, output.fileno())
        if code != 0:
            end = "\n".join(f"  {line}" for line in self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
            raise ToolError(f"{failure} (exit code {code}). The end of {self.log}:\n{end}\n{hint}".rstrip())


def _wait(command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None, output: int) -> int:
    """Runs the command in a separate process group, so that an interruption ends its children too."""
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
