"""Reads and validates `durations.yaml`."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(_Model):
    """One kind of work, with its usual duration and range in seconds."""

    seconds: float
    range: tuple[float, float]
    source: str


class Event(_Model):
    """Work in the cluster that is not a resource."""

    name: str
    step: str
    after: tuple[str, ...]


class Durations(_Model):
    """The content of `durations.yaml`."""

    steps: dict[str, Step]
    resources: tuple[tuple[str, str], ...]
    events: tuple[Event, ...]
    goal: str
    unavoidable: tuple[str, ...]

    def step_of(self, resource: str) -> str:
        """Returns the step of a resource `<type> <name>`. Raises LookupError if its type has no duration."""
        for pattern, step in self.resources:
            if fnmatchcase(resource, pattern):
                return step
        raise LookupError(f"no duration is known for {resource}: add its type to simulator/bench/durations.yaml")

    def seconds(self, step: str) -> float:
        return self.steps[step].seconds


@functools.cache
def durations() -> Durations:
    return Durations.model_validate(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")))
