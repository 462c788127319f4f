"""Messages between the host and the process of a program. This module does not import the SDK."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

ALREADY_REPORTED = 32


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """The engine's description of the deployment. `parallel` is the number of parallel steps."""

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
