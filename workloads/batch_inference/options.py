"""Options of batch inference, under `workloadOptions.batch-inference`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from config.data.language_models import LanguageModel, language_models
from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, Count, may_be
from workloads._lib.hugging_face import Token
from workloads._lib.team import TeamOptions

NAME = "batch-inference"
_PART = "[A-Za-z0-9_](?:[.-]?[A-Za-z0-9_])*"
_SLACK = 64

Model = Annotated[
    str,
    # From huggingface_hub, utils/_validators.py: REPO_ID_REGEX and the other rules of validate_repo_id.
    StringConstraints(pattern=rf"^(?:{_PART}/)?{_PART}$", max_length=96),
    may_be("a model's name on huggingface.co, such as ibm-granite/granite-3.2-8b-instruct"),
]


class BatchInferenceOptions(TeamOptions):
    """Options of batch inference."""

    model: Model = "ibm-granite/granite-3.2-8b-instruct"
    """The model: a name on huggingface.co.

    Memory is checked in advance for models in `config/data/language_models.yaml`.
    """
    input_length: Count = 128
    """Tokens of a prompt; they are random."""
    output_length: Count = 128
    """Tokens of an answer; all of them are generated."""
    prompts: Count = 512
    """Number of prompts in the batch."""
    concurrency: Count = 16
    """Largest number of concurrent prompts."""
    gpus: Count = 1
    """GPUs of one node that share the model (tensor parallel)."""
    hugging_face_token: Annotated[Token | None, EMPTY_IS_UNSET] = None
    """Hugging Face token for gated models; set it with `--secret`. Only the server gets it, from a Secret."""
    cache_gi: Count | None = None
    """Size of the claim for the model, GiB; by default 1.5 times its weights, and at least 100.

    It can grow, not shrink.
    """
    run: Count = 1
    """Number of the run; a run that already has results is skipped. Use another number to run again."""
    app_wrapper: bool = True
    """Wrap the job in an AppWrapper, which restarts it on another node if its node is bad."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """Number of restarts after failures."""

    @property
    def facts(self) -> LanguageModel | None:
        """The known facts about the model, or None."""
        return language_models().get(self.model)

    @property
    def tokens(self) -> int:
        return self.input_length + self.output_length

    @property
    def longest(self) -> int:
        """The server's longest sequence. The server may count a few more tokens in a random prompt than requested."""
        if self.facts is None:
            return self.tokens
        return max(self.tokens, min(self.tokens + _SLACK, self.facts.context))
