"""Times the real pulumi CLI on a simulator with its own state folder."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from simulator.host import paths


class BenchFailed(Exception):
    """A measured command failed. The message is the command's output."""


@dataclass(frozen=True)
class Timing:
    """The seconds until a command ended, and until the engine reached the first resource."""

    seconds: float
    first_resource: float
    resources: int
    spans: dict[str, float]
    """Seconds of each resource's step, by the resource's name."""


class World:
    """A simulator with its state in `home`, not in the checkout."""

    def __init__(self, home: Path) -> None:
        own = {**os.environ, "SIMULATOR_HOME": str(home)}
        shell = f'eval "$({shlex.quote(sys.executable)} -m simulator env)" && env -0'
        command = ["bash", "-c", shell]
        listed = subprocess.run(command, cwd=paths.ROOT, env=own, capture_output=True, text=True, check=True).stdout
        self.environment = dict(line.split("=", 1) for line in listed.split("\0") if "=" in line)

    def simulator(self, command: str) -> float:
        began = time.monotonic()
        self._checked([sys.executable, "-m", "simulator", command], paths.ROOT)
        return time.monotonic() - began

    def pulumi(self, project: Path, *arguments: str) -> str:
        return self._checked([str(paths.tool("pulumi")), *arguments, "--non-interactive"], project)

    def timed(self, project: Path, command: str) -> Timing:
        """Times `preview`, or `up` or `destroy` without a preview. Raises BenchFailed."""
        options = [] if command == "preview" else ["--yes", "--skip-preview"]
        began, printed = time.monotonic(), []
        starts: dict[str, float] = {}
        errors: list[str] = []
        spans: dict[str, float] = {}
        with subprocess.Popen(
            [str(paths.tool("pulumi")), command, "--json", *options, "--non-interactive"],
            cwd=project,
            env=self.environment | {"PULUMI_ENABLE_STREAMING_JSON_PREVIEW": "true"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as run:
            for line in run.stdout or ():
                printed.append(line)
                event = json.loads(line) if line.startswith("{") else {}
                if step := event.get("resourcePreEvent"):
                    starts[step["metadata"]["urn"]] = time.monotonic() - began
                elif step := event.get("resOutputsEvent"):
                    urn = step["metadata"]["urn"]
                    spans[urn.rpartition("::")[2]] = time.monotonic() - began - starts[urn]
                elif (step := event.get("diagnosticEvent")) and step["severity"] == "error":
                    errors.append(f"{step.get('urn', '')} {step['message']}")
        if run.returncode:
            why = "\n".join(errors) or "".join(printed)[-4000:]
            raise BenchFailed(f"pulumi {command} in {project.name}: {why}")
        return Timing(time.monotonic() - began, min(starts.values(), default=0.0), len(starts), spans)

    def _checked(self, command: list[str], folder: Path) -> str:
        answer = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True, text=True, check=False)
        if answer.returncode:
            raise BenchFailed(f"{' '.join(command)}\n{answer.stdout}\n{answer.stderr}")
        return answer.stdout
