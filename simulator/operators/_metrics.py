"""Prometheus's text format, for simulated exporters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Family:
    """A gauge with a value for each set of labels."""

    name: str
    help: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)


def exposition(families: Iterable[Family]) -> str:
    return "".join(line + "\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterable[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} gauge"
    for labels, value in family.samples:
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{family.name}{{{inside}}} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
