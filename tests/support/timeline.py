"""Draws the README's picture of `pulumi up` of `dev` on Azure, from its golden file.

After an intended change, run `python -m tests.support.timeline`. `make bench` draws a real `up`.
"""

from __future__ import annotations

from typing import Any

from simulator.bench import deployment, picture
from simulator.bench.durations import durations
from simulator.bench.schedule import schedule
from simulator.host.paths import ROOT
from tests.support import golden
from tests.support.mocks import Recorder

FILE = ROOT / "docs" / "timeline.svg"
TITLE = "pulumi up of dev, with the usual durations of its parts on Azure (simulator/bench/durations.yaml)"


def drawn() -> str:
    known = durations()
    slots = schedule(deployment.works(_export(golden.run("dev")), known), known.goal)
    return picture.svg(slots, TITLE)


def _export(recorder: Recorder) -> dict[str, Any]:
    resources = [
        {
            "urn": _urn(f"{found.type} {found.name}"),
            "custom": found.custom,
            "dependencies": [_urn(name) for name in found.dependencies],
            "provider": f"{_urn(found.provider)}::id",
        }
        for found in recorder.registered
    ]
    return {"deployment": {"resources": resources}}


def _urn(name: str) -> str:
    return "urn:pulumi:dev::ai-on-aks::" + "::".join(name.split(" ", 1))


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
