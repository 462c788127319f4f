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
    """Options of the template `metaseq`."""

    pool: Text | None = None
    """GPU pool for `--template metaseq`, which trains Metaseq on all GPUs of a node for each scenario; by default the
    pool of the other scenarios.
    """
    model_size: ModelSize = "125m"
    """Model size of each training, as in the workload metaseq."""
    num_updates: Count = 20
    """Number of updates."""


class ResimOptions(WorkloadOptions):
    """Options of resimulation."""

    count: Annotated[int, Field(ge=1, le=MOST_SCENARIOS), PLAIN_DIGITS] = 20
    """Number of scenarios in the stack's own batch; `python -m workloads.resim submit` runs others."""
    other_pools: tuple[str, ...] = ()
    """Further GPU pools that may run the batch, such as an on-demand pool in addition to a Spot pool."""
    gpus: Count = 1
    """GPUs of each scenario."""
    parallelism: Annotated[int, Field(ge=1, le=MOST_SCENARIOS), PLAIN_DIGITS] | None = None
    """Number of parallel scenarios; by default as many as fit on the GPUs of all its pools."""
    retries: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """Number of retries of a scenario; evictions do not count."""
    most_failed_percent: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 100
    """Percentage of failed scenarios above which the batch stops."""
    enough_percent: Percent = 100
    """Percentage of successful scenarios at which the batch stops."""
    hours: Annotated[int, Field(ge=1, le=MOST_HOURS), PLAIN_DIGITS] = 24
    """Hours that a batch may take; a SAS of its containers must last longer."""
    input_container: ContainerName = "input"
    """Container with the scenarios' inputs."""
    output_container: ContainerName = "output"
    """Container for the scenarios' outputs, in an account with a hierarchical namespace."""
    dataset: Dataset = ""
    """Folder in the input container; a scenario reads the subfolder with its name, or else the whole folder."""
    gpu_seconds: Count = 30
    """Seconds that a scenario of the image test-io loads its GPU."""
    output_files: Count = 2
    """Number of files that a scenario of the image test-io writes."""
    output_size: Size = "16Mi"
    """Size of each of these files."""
    command: tuple[str, ...] = ()
    """Command of a scenario in your own `image`, instead of the load of test-io.

    workloads/resim/scripts/run-scenario.sh documents its environment.
    """

    metaseq: MetaseqTemplate | None = None
    """Options of the template for `--template metaseq`, which is available if they are set."""
