"""Options of the pre-training, under `workloadOptions.pytorch-pretraining`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count
from config.schema.storage import ContainerName
from workloads._lib.team import TeamOptions
from workloads.metaseq.options import Size
from workloads.metaseq.sizes import ModelSize, models

NAME = "pytorch-pretraining"

DEFAULT_SIZE = "1.3b"


class PretrainingOptions(TeamOptions):
    """Options of the pre-training."""

    model_size: Size = DEFAULT_SIZE
    """Model to train: a size in `workloads/metaseq/models.yaml`, with heads of 128 dimensions."""
    num_nodes: Count = 1
    """Number of nodes to train on."""
    gpus: Count | None = None
    """GPUs on each node; by default all of them."""
    batch: Count | None = None
    """Sequences in a step, over all GPUs; by default as many as for OPT of that size."""
    sequence: Count = 2048
    """Tokens in a sequence."""
    steps: Count | None = None
    """Number of steps; by default OPT's 300e9 tokens, which take weeks."""
    fp8: bool = False
    """Multiply matrices in FP8, on GPUs that support it."""
    data_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container with files `*.bin` of token numbers; by default synthetic data of known entropy."""
    vocabulary: Annotated[int, Field(ge=256, le=2**20), PLAIN_DIGITS] = 51200
    """Entries of the data files' tokenizer, or more; a multiple of 128 is fastest."""
    checkpoint_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container for checkpoints; by default a claim with the shared StorageClass."""
    checkpoint_steps: Count = 500
    """Steps between checkpoints."""
    app_wrapper: bool = True
    """Wrap the job in an AppWrapper, which restarts all of it if it fails or its node is bad."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 10
    """Number of restarts after failures."""

    @property
    def open_end(self) -> str:
        """The unset option that would set an end; by default, training takes weeks."""
        return "" if self.steps else "steps"

    @property
    def size(self) -> ModelSize:
        return models().sizes[self.model_size]

    @property
    def sequences(self) -> int:
        return self.batch or models().sequences(self.size)

    @property
    def all_steps(self) -> int:
        return self.steps or int(models().training_tokens) // (self.sequences * self.sequence)
