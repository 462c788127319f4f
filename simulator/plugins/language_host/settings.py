"""What the host and the process that it starts for a program tell each other. It spares the host the SDK."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

ALREADY_REPORTED = 32
"""The exit code of a program whose error has been shown."""


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """What the engine says about the deployment; `parallel` is the number of steps that it runs at once."""

    program: str
    project: str
    stack: str
    organization: str
    root_directory: str
    monitor: str
    engine: str
    parallel: int
    dry_run: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self))
