"""The scalars of a training as the simulator keeps them for Aim and TensorBoard: JSON lines, in place of their formats.

They lie where the real ones do: a file for each run below `.aim` of Aim's repository, and a file of events in the
folder of each run below TensorBoard's `--logdir`.
"""

from __future__ import annotations

import json
import math
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

AIM_RUNS = Path(".aim/meta/chunks")
EVENTS = "*tfevents*"
SAMPLES = 1000
"""Points of a curve that are shown at most, TensorBoard's own number for scalars."""
Point = tuple[float, int, float]
"""Wall time in seconds since 1970, step, value."""


@dataclass(frozen=True)
class Run:
    """One training; `curves` has each scalar's points, in the order of steps."""

    name: str
    curves: Mapping[str, list[Point]]
    ended: bool

    @property
    def steps(self) -> int:
        """The last one; 0 before the first."""
        return max((points[-1][1] for points in self.curves.values()), default=0)


def aim_run(repository: Path, run_hash: str | None) -> Path:
    """Makes the file of a run, which Aim adds to where it is there. Raises OSError."""
    return _made(repository / AIM_RUNS / (run_hash or uuid.uuid4().hex[:24]))


def events_file(folder: Path) -> Path:
    """Makes the file of events of a new run. Raises OSError."""
    return _made(folder / f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.0")


def line(step: int, values: Mapping[str, float]) -> str:
    """All scalars of a step."""
    return json.dumps({"wall_time": time.time(), "step": step, "values": dict(values)})


def end() -> str:
    """Says that the training ended well."""
    return json.dumps({"ended": time.time()})


def aim_runs(repository: Path) -> list[Run]:
    """By hash. A folder without runs has none."""
    return [_read(file, file.name) for file in sorted((repository / AIM_RUNS).glob("*"))]


def event_runs(folder: Path) -> list[Run]:
    """By their path below the folder, as TensorBoard names them; it looks at every depth."""
    return [_read(file, str(file.parent.relative_to(folder))) for file in sorted(folder.rglob(EVENTS))]


def _made(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def _read(file: Path, name: str) -> Run:
    curves: dict[str, list[Point]] = {}
    ended = False
    for text in file.read_text().rpartition("\n")[0].splitlines():  # without a line that is just being written
        found = json.loads(text)
        ended = "ended" in found
        for scalar, value in found.get("values", {}).items():
            curves.setdefault(scalar, []).append((found["wall_time"], found["step"], value))
    return Run(name, {scalar: _sample(points) for scalar, points in curves.items()}, ended)


def _sample(points: list[Point]) -> list[Point]:
    """Evenly chosen, the newest among them."""
    return points[:: -max(1, math.ceil(len(points) / SAMPLES))][::-1]
