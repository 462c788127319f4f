"""Options of the Metaseq training, under `workloadOptions.metaseq`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from config.data.near import hint, near
from config.schema.base import PLAIN_DIGITS, Count, Text, unfit
from workloads._lib.mpi import MpiOptions
from workloads.metaseq.sizes import models

NAME = "metaseq"

DEFAULT_SIZE = "1.3b"
_CLOSE = 0.75
"""Two numbers of parameters with at least this ratio may be the same number, rounded differently."""


def _billions(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([mb]?)", text, re.IGNORECASE)
    return float(found[1]) / (1000 if found[2].lower() == "m" else 1) if found else 0.0


def _known(name: str) -> str:
    if name not in models().sizes:
        found, number = near(name, models().sizes), _billions(name)
        sizes = [(size, _billions(size)) for size in models().sizes]
        close = [size for size, each in sizes if min(number, each) / max(number, each) > _CLOSE]
        likely = close if number else found
        shown = found if {*likely} <= {*found} else likely
        raise unfit(
            f"is {name!r}, an unknown model size{hint(shown)}", likely[0] if likely and len(close) < 2 else None
        )
    return name


Size = Annotated[
    Text,
    AfterValidator(_known),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(models().sizes))),
]


class MetaseqOptions(MpiOptions):
    """Options of the Metaseq training."""

    model_size: Size = DEFAULT_SIZE
    """Model to train, 125m to 175b: a size in `workloads/metaseq/models.yaml`."""
    num_nodes: Count = 1
    """Number of nodes to train on.

    It is independent of the pool's node count, because it must divide the batch.
    """
    num_updates: Count | None = None
    """Number of updates; by default upstream's 300e9 tokens, which take weeks."""
    warmup_updates: Annotated[int, Field(ge=0), PLAIN_DIGITS] | None = None
    """Updates until the full learning rate; by default upstream's 375e6 tokens."""
    aim: bool = False
    """Record metrics for Aim."""
    tensorboard: bool = False
    """Record metrics for TensorBoard."""
