"""Options of the batch, under `workloadOptions.batch-inference`."""

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
    # huggingface_hub, utils/_validators.py: REPO_ID_REGEX, and what validate_repo_id forbids beside it
    StringConstraints(pattern=rf"^(?:{_PART}/)?{_PART}$", max_length=96),
    may_be("a model's name on huggingface.co, as in ibm-granite/granite-3.2-8b-instruct"),
]


class BatchInferenceOptions(TeamOptions):
    """Which model answers what, on how much."""

    model: Model = "ibm-granite/granite-3.2-8b-instruct"
    """What answers: a model's name on huggingface.co.

    Of those in `config/data/language_models.yaml` it is told beforehand whether they fit.
    """
    input_length: Count = 128
    """Tokens of a prompt, which are random."""
    output_length: Count = 128
    """Tokens of an answer, all of which are made."""
    prompts: Count = 512
    """Prompts of the batch."""
    concurrency: Count = 16
    """Prompts that are answered at once, at most."""
    gpus: Count = 1
    """GPUs of one node, which share the model (tensor parallel)."""
    hugging_face_token: Annotated[Token | None, EMPTY_IS_UNSET] = None
    """For gated models; with `--secret`. It reaches the server by a Secret, and nothing else."""
    cache_gi: Count | None = None
    """Size of the claim that keeps the model, GiB; by default its weights' and a half, 100 at least.

    It can grow, not shrink.
    """
    run: Count = 1
    """Number of the run: one that has its results is not made again, another number makes it anew."""
    app_wrapper: bool = True
    """Wrap the job in an AppWrapper, which starts it anew elsewhere when its node is bad."""
    restarts: Annotated[int, Field(ge=0, le=100), PLAIN_DIGITS] = 3
    """How often it is started anew when it has failed."""

    @property
    def facts(self) -> LanguageModel | None:
        """What is known of the model, if anything is."""
        return language_models().get(self.model)

    @property
    def tokens(self) -> int:
        """Of a prompt and its answer."""
        return self.input_length + self.output_length

    @property
    def longest(self) -> int:
        """What the server is told to be ready for: a prompt that was made of tokens may be read as a few more."""
        if self.facts is None:
            return self.tokens
        return max(self.tokens, min(self.tokens + _SLACK, self.facts.context))
