"""Compares the program with the smallest program for the same resources, on the same simulator."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.bench import recorded
from simulator.bench.engine import Timing, World
from simulator.host import paths

STACK = "dev"
_ROUNDS, _PREVIEWS = 3, 3
_PARTS = ("Pulumi.yaml", "__main__.py", "components", "config", "docker", "operators", "simulator", "workloads")


@dataclass(frozen=True)
class Run:
    """The times of one program: preview, up, a second preview and up without changes, destroy."""

    preview: Timing
    up: Timing
    preview_again: Timing
    up_again: Timing
    destroy: Timing


@dataclass(frozen=True)
class Measures:
    """The times of both programs, the state of the real program, and the seconds to start the simulator."""

    real: Run
    bare: Run
    export: dict[str, Any]
    start: float

    def table(self) -> list[tuple[str, float, float, float]]:
        real, bare = asdict(self.real), asdict(self.bare)
        return [
            (name.replace("_", " "), run["seconds"], bare[name]["seconds"], run["seconds"] / bare[name]["seconds"])
            for name, run in real.items()
        ]


def measure(folder: Path, report: Callable[[str], None]) -> Measures:
    """Empties `folder` and runs both programs there in turn, so that other load affects both.

    Returns medians, because the first round also compiles imports. Raises BenchFailed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    world = World(folder / "world")
    report("starting a simulated world")
    start = world.simulator("start")
    real, bare = _project(folder / "real"), folder / "bare"
    rounds: dict[Path, list[list[Timing]]] = {real: [], bare: []}
    try:
        world.pulumi(real, "stack", "init", STACK)
        for number in range(1, _ROUNDS + 1):
            report(f"the program, {number} of {_ROUNDS}")
            timings, state = _round(world, real)
            rounds[real].append(timings)
            if number == 1:
                export = json.loads(state)
                _bare_project(bare, export)
                world.pulumi(bare, "stack", "init", STACK)
            report(f"the bare program, {number} of {_ROUNDS}")
            rounds[bare].append(_round(world, bare)[0])
    finally:
        world.simulator("clean")
    return Measures(_medians(rounds[real]), _medians(rounds[bare]), export, start)


def _round(world: World, project: Path) -> tuple[list[Timing], str]:
    """Returns the times in the order of `Run`, and the state after the first `up`."""
    preview = _median(world.timed(project, "preview") for _ in range(_PREVIEWS))
    up = world.timed(project, "up")
    state = world.pulumi(project, "stack", "export", "--show-secrets")
    again = world.timed(project, "preview"), world.timed(project, "up")
    return [preview, up, *again, world.timed(project, "destroy")], state


def _medians(rounds: Iterable[Iterable[Timing]]) -> Run:
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


def _bare_project(folder: Path, export: dict[str, Any]) -> None:
    shutil.copytree(Path(__file__).parent / "bare", folder)
    (folder / "simulator").symlink_to(paths.ROOT / "simulator")  # relative to the project
    (folder / "resources.json").write_text(json.dumps(recorded.entries(export)), encoding="utf-8")
    salt = yaml.safe_load((paths.ROOT / f"Pulumi.{STACK}.yaml").read_text("utf-8"))["encryptionsalt"]
    (folder / f"Pulumi.{STACK}.yaml").write_text(f"encryptionsalt: {salt}\n", encoding="utf-8")
