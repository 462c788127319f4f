"""Options of resimulation, under `workloadOptions.resim`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from config.schema.base import PLAIN_DIGITS, Count, Model, Text, may_be
from config.schema.storage import ContainerName
from config.schema.workload import WorkloadOptions
from workloads.metaseq.options import Size as ModelSize
from workloads.resim.batch import MOST_SCENARIOS

NAME = "resim"
MOST_HOURS = 24 * 365

Percent = Annotated[int, Field(ge=1, le=100), PLAIN_DIGITS]
Size = Annotated[
    str,
    StringConstraints(pattern=r"^[1-9][0-9]{0,5}(Ki|Mi|Gi)$"),
    may_be("a number and Ki, Mi or Gi, as in 16Mi"),
]
Dataset = Annotated[
    str,
    StringConstraints(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*)?$"),
    may_be("the path of a folder, as in fleet/2026-11, or nothing"),
]


class MetaseqTemplate(Model):
    """What a scenario of the template `metaseq` trains, and where."""

    pool: Text | None = None
    """GPU pool for `--template metaseq`, by which each scenario is a training of Metaseq on all GPUs of a node; by
    default that of the other scenarios.
    """
    model_size: ModelSize = "125m"
    """What each trains there, as the workload metaseq."""
    num_updates: Count = 20
    """For how many updates."""


class ResimOptions(WorkloadOptions):
    """What one scenario does, between which containers, and what becomes of a batch whose scenarios fail."""

    count: Annotated[int, Field(ge=1, le=MOST_SCENARIOS), PLAIN_DIGITS] = 20
    """Scenarios of the stack's own batch; `python -m workloads.resim submit` runs others."""
    other_pools: tuple[str, ...] = ()
    """More GPU pools whose nodes may take it, as an on-demand pool beside a Spot one."""
    gpus: Count = 1
    """GPUs of each scenario."""
    parallelism: Annotated[int, Field(ge=1, le=MOST_SCENARIOS), PLAIN_DIGITS] | None = None
    """Scenarios at once; by default as many as its pools can have GPUs for."""
    retries: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """How often a scenario may fail before it has failed; evictions do not count."""
    most_failed_percent: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 100
    """Of a batch's scenarios; when more have failed, the rest is stopped."""
    enough_percent: Percent = 100
    """Of a batch's scenarios; when so many have succeeded, the rest is stopped."""
    hours: Annotated[int, Field(ge=1, le=MOST_HOURS), PLAIN_DIGITS] = 24
    """How long a batch may take; a SAS of its containers must last longer."""
    input_container: ContainerName = "input"
    """Container that scenarios read."""
    output_container: ContainerName = "output"
    """Container that they write, in an account with a hierarchical namespace."""
    dataset: Dataset = ""
    """Folder in the input container; a scenario reads the folder of its name there, or, without one, all of it."""
    gpu_seconds: Count = 30
    """How long a scenario of the image test-io loads its GPU."""
    output_files: Count = 2
    """Files that it writes."""
    output_size: Size = "16Mi"
    """Size of each."""
    command: tuple[str, ...] = ()
    """What runs a scenario in an `image` of your own, in place of the load of test-io.

    workloads/resim/scripts/run-scenario.sh says what it is given.
    """

    metaseq: MetaseqTemplate | None = None
    """Offer `--template metaseq` too."""
