"""The durations of `durations.yaml`, checked."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Model):
    """One kind of work; seconds."""

    seconds: float
    range: tuple[float, float]
    source: str


class Event(_Model):
    """Work in the cluster that no resource of the deployment is."""

    name: str
    step: str
    after: tuple[str, ...]


class Durations(_Model):
    """All of the file."""

    steps: dict[str, Step]
    resources: tuple[tuple[str, str], ...]
    events: tuple[Event, ...]
    goal: str
    unavoidable: tuple[str, ...]

    def step_of(self, resource: str) -> str:
        """The step that a resource, `<type> <name>`, is. Raises LookupError for one of a type that has no duration."""
        for pattern, step in self.resources:
            if fnmatchcase(resource, pattern):
                return step
        raise LookupError(f"no duration is known for {resource}: add its type to simulator/bench/durations.yaml")

    def seconds(self, step: str) -> float:
        """How long the step usually takes."""
        return self.steps[step].seconds


@functools.cache
def durations() -> Durations:
    """The file, read once."""
    return Durations.model_validate(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")))
