"""Options of the fine-tuning, under `workloadOptions.ray-finetuning`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from config.data.language_models import LanguageModel, language_models
from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count, may_be
from config.schema.storage import ContainerName
from workloads._lib.hugging_face import Token
from workloads._lib.team import TeamOptions
from workloads._lib.team_training import DATA

NAME = "ray-finetuning"
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]*"
_PACKS = 8
SYNTHETIC = 2048
"""Number of synthetic examples (docker/ray-finetuning/finetuning/options.py)."""

Model = Annotated[
    str,
    StringConstraints(pattern=rf"^(?:{_WORD}(?:/{_WORD})?|{DATA}(?:/{_WORD})+)$", max_length=200),
    may_be(
        f"a name on the Hugging Face Hub such as facebook/opt-1.3b, or {DATA}/<folder> for a folder of dataContainer"
    ),
]


class FinetuningOptions(TeamOptions):
    """Options of the fine-tuning."""

    model: Model = "facebook/opt-1.3b"
    """Model to fine-tune: a name on the Hugging Face Hub, or a folder of `dataContainer` as `/data/<folder>`."""
    hugging_face_token: Annotated[Token | None, EMPTY_IS_UNSET] = None
    """Hugging Face token for gated models; set it with `--secret`. Only pods with GPUs get it, from a Secret."""
    num_nodes: Count = 1
    """Number of nodes to train on, each with one Ray pod."""
    gpus: Count | None = None
    """GPUs on each node; by default all of them."""
    data_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container with `*.jsonl`; each line has `text`, or `prompt` and `completion`. By default synthetic tokens."""
    checkpoint_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container for checkpoints and the adapter; by default a claim with the shared StorageClass."""
    rank: Annotated[int, Field(ge=1, le=1024), PLAIN_DIGITS] = 16
    """Rank of LoRA's matrices."""
    longest: Count = 2048
    """Most tokens of an example; the rest is cut off."""
    pack: Count = 8192
    """Tokens that a GPU processes together, in concatenated examples."""
    batch: Count | None = None
    """Packs in a step, over all GPUs; by default 8, rounded up to a multiple of the number of GPUs."""
    epochs: Count = 1
    """Number of passes over the examples."""
    evaluation: Annotated[int, Field(ge=0), PLAIN_DIGITS] = 64
    """Number of examples for evaluation before and after training; they are not trained on."""
    checkpoint_steps: Count = 50
    """Steps between checkpoints."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """Number of restarts after failures, each with another Ray cluster."""

    @property
    def known(self) -> LanguageModel | None:
        """The known facts about the model, or None."""
        return language_models().get(self.model)

    def packs(self, gpus: int) -> int:
        return self.batch or -(-_PACKS // gpus) * gpus
