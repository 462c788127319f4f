"""What the program costs beside the least one that registers the same resources on the same stand-ins."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator import paths
from simulator.bench import recorded
from simulator.bench.engine import Timing, World

STACK = "dev"
_ROUNDS = 3
_PARTS = ("Pulumi.yaml", "__main__.py", "components", "config", "docker", "simulator", "workloads")


@dataclass(frozen=True)
class Run:
    """One program: first preview and up, then both again with nothing to change, then destroy."""

    preview: Timing
    up: Timing
    preview_again: Timing
    up_again: Timing
    destroy: Timing


@dataclass(frozen=True)
class Measures:
    """Both programs, the state of the real one, and how long the simulator took to start (seconds)."""

    real: Run
    bare: Run
    export: dict[str, Any]
    start: float

    @property
    def control_plane(self) -> float:
        """Seconds until a new cluster's API server answered."""
        return self.real.up.spans["cluster"]

    def table(self) -> list[tuple[str, float, float, float]]:
        """Per command: seconds of the real program, of the bare one, and their ratio."""
        real, bare = asdict(self.real), asdict(self.bare)
        return [
            (name.replace("_", " "), run["seconds"], bare[name]["seconds"], run["seconds"] / bare[name]["seconds"])
            for name, run in real.items()
        ]


def measure(folder: Path, told: Callable[[str], None]) -> Measures:
    """Runs both, one after the other, in `folder`, which is emptied first. Raises BenchFailed."""
    shutil.rmtree(folder, ignore_errors=True)
    world = World(folder / "world")
    told("starting a simulated world")
    start = world.simulator("start")
    try:
        real = _project(folder / "real")
        exported: list[dict[str, Any]] = []
        told("the program")
        first = _run(world, real, lambda: exported.append(world.read(real, "stack", "export", "--show-secrets")))
        told("the bare program")
        bare = _bare_project(folder / "bare", exported[0])
        second = _run(world, bare, lambda: None)
    finally:
        world.simulator("clean")
    return Measures(first, second, exported[0], start)


def _run(world: World, project: Path, between: Callable[[], None]) -> Run:
    """The medians of several rounds: the first of all also compiles what it imports."""
    world.quiet(project, "stack", "init", STACK)
    world.quiet(project, "stack", "select", STACK)
    rounds = []
    for _ in range(_ROUNDS):
        preview, up = world.timed(project, "preview"), world.timed(project, "up")
        between()
        again = world.timed(project, "preview"), world.timed(project, "up")
        rounds.append((preview, up, *again, world.timed(project, "destroy")))
    return Run(*(_median(timings) for timings in zip(*rounds, strict=True)))


def _median(timings: Iterable[Timing]) -> Timing:
    ordered = sorted(timings, key=lambda timing: timing.seconds)
    return ordered[len(ordered) // 2]


def _project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for part in _PARTS:
        (folder / part).symlink_to(paths.ROOT / part)
    shutil.copy(paths.ROOT / f"Pulumi.{STACK}.yaml", folder)
    return folder


def _bare_project(folder: Path, export: dict[str, Any]) -> Path:
    shutil.copytree(Path(__file__).parent / "bare", folder)
    (folder / "simulator").symlink_to(paths.ROOT / "simulator")  # charts are named relative to the project
    (folder / "resources.json").write_text(json.dumps(recorded.entries(export)), encoding="utf-8")
    salt = yaml.safe_load((paths.ROOT / f"Pulumi.{STACK}.yaml").read_text("utf-8"))["encryptionsalt"]
    (folder / f"Pulumi.{STACK}.yaml").write_text(f"encryptionsalt: {salt}\n", encoding="utf-8")
    return folder
