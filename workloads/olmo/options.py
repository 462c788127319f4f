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
    may_be("at most 63 letters, digits, '.', '_' and '-', the first a letter or digit"),
]


class OlmoOptions(WorkloadOptions):
    """What to train on how much of which data, and where its checkpoints go."""

    config: ConfigName = DEFAULT_CONFIG
    """A training config of `workloads/olmo/configs.yaml`.

    All of them are OLMo's official ones.
    """
    num_nodes: Count = 1
    """Nodes to train on."""
    stop_at: Count | None = None
    """Step to stop at; by default where the config ends, after weeks."""
    micro_batch: Count | None = None
    """Sequences that one GPU takes at a time; by default the config's, or the most below it that its GPUs share and
    hold.
    """
    evaluate: bool = True
    """Run the config's evaluations.

    Their data is prepared too.
    """
    run_name: Annotated[RunName | None, EMPTY_IS_UNSET] = None
    """Folder of the checkpoints; a run of the same name goes on from its last one.

    Below the namespace's; by default the config's name.
    """
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 10
    """How often all nodes may fail before the job does.

    Lost nodes and evictions do not count.
    """
    data_container: ContainerName = "olmo-data"
    """Container that the training reads."""
    checkpoint_container: ContainerName = "olmo-checkpoints"
    """Container that it writes."""
    prepare: bool = True
    """Copy the config's data files into the data container first."""
    max_files: Count | None = None
    """Train on the first so many of the config's data files; all of them are terabytes."""

    @property
    def open_end(self) -> str:
        """Configs end after weeks."""
        return "" if self.stop_at else "stopAt"

    @property
    def training(self) -> TrainingConfig:
        """The chosen config."""
        return training_configs()[self.config]
