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
"""Examples that there are without data (docker/ray-finetuning/finetuning/options.py)."""

Model = Annotated[
    str,
    StringConstraints(pattern=rf"^(?:{_WORD}(?:/{_WORD})?|{DATA}(?:/{_WORD})+)$", max_length=200),
    may_be(f"a name on Hugging Face's hub, as in facebook/opt-1.3b, or a folder below {DATA}, which dataContainer is"),
]


class FinetuningOptions(TeamOptions):
    """What to fine-tune, by which data, on what, and where what is learnt goes."""

    model: Model = "facebook/opt-1.3b"
    """What to fine-tune: a name on Hugging Face's hub, or a folder of `dataContainer` as `/data/<folder>`."""
    hugging_face_token: Annotated[Token | None, EMPTY_IS_UNSET] = None
    """For gated models; with `--secret`. It reaches pods with GPUs by a Secret, and nothing else."""
    num_nodes: Count = 1
    """Nodes to train on; a pod of Ray's on each."""
    gpus: Count | None = None
    """GPUs of each node; by default all of them."""
    data_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container with `*.jsonl`, lines with `text`, or `prompt` and `completion`; by default synthetic tokens."""
    checkpoint_container: Annotated[ContainerName | None, EMPTY_IS_UNSET] = None
    """Container for checkpoints and adapter; by default a claim of the class of shared files."""
    rank: Annotated[int, Field(ge=1, le=1024), PLAIN_DIGITS] = 16
    """Rank of LoRA's matrices."""
    longest: Count = 2048
    """Tokens of an example: more are cut off."""
    pack: Count = 8192
    """Tokens that a GPU takes at once, examples end to end."""
    batch: Count | None = None
    """Packs of a step, of all GPUs together; by default 8, or one for each GPU."""
    epochs: Count = 1
    """How often each example is learnt."""
    evaluation: Annotated[int, Field(ge=0), PLAIN_DIGITS] = 64
    """Examples that are not learnt, but asked before and after."""
    checkpoint_steps: Count = 50
    """Steps from one checkpoint to the next."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """How often it is started anew, with another cluster of Ray's, when it has failed."""

    @property
    def known(self) -> LanguageModel | None:
        """What is known of the model."""
        return language_models().get(self.model)

    def packs(self, gpus: int) -> int:
        """Of a step, on so many GPUs."""
        return self.batch or -(-_PACKS // gpus) * gpus
