"""Options of OLMo, under `workloadOptions.olmo`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from config.data.near import hint, near
from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count, may_be, unfit
from config.schema.storage import ContainerName
from config.schema.workload import WorkloadOptions
from workloads.olmo.configs import TrainingConfig, training_configs

NAME = "olmo"


def _known(name: str) -> str:
    if name not in training_configs():
        likely = near(name, training_configs())
        raise unfit(f"is {name!r}, not one of OLMo's training configs{hint(likely)}", next(iter(likely), None))
    return name


DEFAULT_CONFIG = "OLMo-1B"
ConfigName = Annotated[
    str,
    AfterValidator(_known),
    Field(json_schema_extra=lambda schema: schema.update(enum=list(training_configs()))),
]
RunName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"),
    may_be("at most 63 letters, digits, '.', '_' and '-'; the first a letter or digit"),
]


class OlmoOptions(WorkloadOptions):
    """Options of OLMo."""

    config: ConfigName = DEFAULT_CONFIG
    """Training config in `workloads/olmo/configs.yaml`.

    All configs there are OLMo's official configs.
    """
    num_nodes: Count = 1
    """Number of nodes to train on."""
    stop_at: Count | None = None
    """Step to stop at; by default the last step in the config, after weeks."""
    micro_batch: Count | None = None
    """Sequences that one GPU processes together; by default as many as fit, up to the number in the config."""
    evaluate: bool = True
    """Run the config's evaluations.

    The data of the evaluations is also prepared.
    """
    run_name: Annotated[RunName | None, EMPTY_IS_UNSET] = None
    """Folder of the checkpoints; a run with the same name continues from the last one.

    The folder is in the folder of the namespace. The default is the config's name.
    """
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 10
    """How often the training may fail before the job fails.

    Lost nodes and evictions do not count.
    """
    data_container: ContainerName = "olmo-data"
    """Container with the training data."""
    checkpoint_container: ContainerName = "olmo-checkpoints"
    """Container for the checkpoints."""
    prepare: bool = True
    """Copy the config's data files into the data container first."""
    max_files: Count | None = None
    """Number of data files to train on, beginning with the first in the config; all files have terabytes."""

    @property
    def open_end(self) -> str:
        """The unset option that would set an end; by default, training takes weeks."""
        return "" if self.stop_at else "stopAt"

    @property
    def training(self) -> TrainingConfig:
        return training_configs()[self.config]
