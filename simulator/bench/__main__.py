"""`make bench`: measures, prints tables and a timeline, and writes them as JSON and SVG."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from simulator.bench import deployment, picture
from simulator.bench.durations import Durations, durations
from simulator.bench.engine import BenchFailed
from simulator.bench.measure import Measures, measure
from simulator.bench.schedule import Slot, schedule
from simulator.host import paths
from simulator.tools.progress import Progress

TARGET_OVERHEAD, TARGET_PATH = 1.3, 1.02
console = Console(highlight=False)


def main() -> int:
    """Runs the benchmark. Returns 1 if a command failed or a target was missed."""
    folder = paths.home() / "bench"
    try:
        steps = [("starting", time.time())]
        with Progress().showing(lambda: steps[-1]):
            measures = measure(folder, lambda text: steps.append((text, time.time())))
    except BenchFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    known = durations()
    slots = schedule(deployment.works(measures.export, known), known.goal)
    found = {"overhead": _overhead(measures), "path": _path(slots, known)}
    title = "up in realistic time: the deployment's own graph, durations of durations.yaml"
    console.print(picture.table(slots, title, console.width))
    (folder / "bench.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (folder / "timeline.svg").write_text(picture.svg(slots, "pulumi up of dev, in realistic time"), encoding="utf-8")
    console.print(f"\nwritten: {_shown(folder / 'bench.json')}, {_shown(folder / 'timeline.svg')}")
    missed = [name for name, part in found.items() if not part["target met"]]
    if missed:
        print(f"error: slower than the target: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def _overhead(measures: Measures) -> dict[str, Any]:
    rows, real, bare = measures.table(), measures.real, measures.bare
    title = f"{real.up.resources} resources, beside a bare program with {bare.up.resources}"
    shown = [(name, f"{one:.1f}", f"{other:.1f}", f"{ratio:.2f}") for name, one, other, ratio in rows]
    _print_table(title, ("command", "program, s", "bare, s", "ratio"), shown)
    first, control_plane = real.preview.first_resource, real.up.spans["cluster"]
    console.print(f"preview, before its first resource: {first:.1f} s (bare: {bare.preview.first_resource:.1f} s)")
    console.print(f"simulator start: {measures.start:.1f} s; a cluster's control plane: {control_plane:.1f} s\n")
    ratios = {name: ratio for name, _, _, ratio in rows}
    return {
        "rows": rows,
        "before the first resource": first,
        "simulator start": measures.start,
        "control plane": control_plane,
        "target met": all(ratios[name] <= TARGET_OVERHEAD for name in ("preview", "up")),
    }


def _path(slots: Sequence[Slot], known: Durations) -> dict[str, Any]:
    total = next(slot.end for slot in slots if slot.name == known.goal)
    unavoidable = sum(known.seconds(step) for step in known.unavoidable)
    rows = [("unavoidable: " + ", ".join(known.unavoidable), unavoidable), ("critical path of up", total)]
    shown = [(name, f"{seconds / 60:.1f}", f"{total / seconds:.3f} of it") for name, seconds in rows]
    _print_table("in realistic time", ("until the first passed NCCL run", "minutes", "up takes"), shown)
    chain = [slot.name for slot in slots if slot.critical and slot.end > slot.start]
    return {"rows": rows, "critical": chain, "target met": total <= TARGET_PATH * unavoidable}


def _print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _shown(file: Path) -> str:
    return str(file.relative_to(paths.ROOT)) if file.is_relative_to(paths.ROOT) else str(file)


if __name__ == "__main__":
    sys.exit(main())
