"""The tables in `reports/` have complete clusters and the expected text.

The report is about workload `train` in namespace `ai`, or the case's `of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from diagnosis.report import Report, platform, report
from tests.unit.diagnosis.entries import cluster

FLAGS = ("lasts", "passing", "shared")
_TABLES = {
    file.stem: yaml.safe_load(file.read_text("utf-8")) for file in sorted(Path(__file__).parent.glob("reports/*"))
}
CASES = {
    f"{topic}: {name}": case for topic, cases in _TABLES.items() for name, case in cases.items() if name != "_shared"
}


def flags(found: Report) -> list[str]:
    marks = [" ".join(flag for flag in FLAGS if getattr(each, flag)) for each in found.findings]
    return marks if any(marks) else []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_report(case: Mapping[str, Any]) -> None:
    assert case.keys() <= {"objects", "volcano", "of", "shows", "flags"}
    read, of = cluster(case["objects"], volcano=case.get("volcano", True)), case.get("of", "ai/train")
    found = platform(read) if of == "platform" else report(read, *of.split("/", 1))
    assert "\n".join(found.lines()) == case["shows"].rstrip("\n")
    assert flags(found) == case.get("flags", [])
