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
    """What to train, on what, and where its checkpoints go."""

    model_size: Size = DEFAULT_SIZE
    """What to train: a size of `workloads/metaseq/models.yaml`, with heads of 128 dimensions."""
    num_nodes: Count = 1
    """Nodes to train on."""
    gpus: Count | None = None
    """GPUs of each node; by default all of them."""
    batch: Count | None = None
    """Sequences of a step, of all GPUs together; by default as many as OPT of that size is trained with."""
    sequence: Count = 2048
    """Tokens of a sequence."""
    steps: Count | None = None
    """Steps to train for; by default OPT's 300e9 tokens, which take weeks."""
    fp8: bool = False
    """Multiply matrices in FP8, on GPUs that can."""
    data_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container with files `*.bin` of token numbers; by default a source of known entropy is learnt."""
    vocabulary: Annotated[int, Field(ge=256, le=2**20), PLAIN_DIGITS] = 51200
    """Entries of the tokenizer that made these files, or more; a multiple of 128 is fastest."""
    checkpoint_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container that checkpoints are written to; by default a claim of the class of shared files."""
    checkpoint_steps: Count = 500
    """Steps from one checkpoint to the next."""
    app_wrapper: bool = True
    """Wrap the job in an AppWrapper, which starts all of it anew when it fails or its node is bad."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 10
    """How often it is started anew when it has failed."""

    @property
    def open_end(self) -> str:
        """Without a number of steps it takes weeks."""
        return "" if self.steps else "steps"

    @property
    def size(self) -> ModelSize:
        """The model."""
        return models().sizes[self.model_size]

    @property
    def sequences(self) -> int:
        """Of a step."""
        return self.batch or models().sequences(self.size)

    @property
    def all_steps(self) -> int:
        """Of the training."""
        return self.steps or int(models().training_tokens) // (self.sequences * self.sequence)
