"""Models on the Hugging Face Hub: checks of a model's name, and the token for gated models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pulumi
import pulumi_kubernetes as kubernetes
from pydantic import SecretStr

from components.context import WorkloadContext
from config.data.language_models import language_models, misspelt
from config.data.near import hint
from config.problems.errors import Problem
from config.problems.fixes import Path, set_command
from config.rules.plain_secrets import unset_secret
from config.schema.base import may_be
from workloads._lib.pods import Manifest

Token = Annotated[SecretStr, may_be("a token for huggingface.co with read access to the model")]
_VARIABLE = "HF_TOKEN"


def model_problems(workload: str, model: str, token: SecretStr | None) -> Iterator[Problem]:
    where: Path = ("workloadOptions", workload)
    if likely := misspelt(model):
        what = f"is {model!r}, an unknown model{hint(likely)}"
        yield Problem((*where, "model"), what, likely[0], set_command((*where, "model"), likely[0]))
    known = language_models().get(model)
    if known and known.gated and token is None:
        what = f"is not set, but {model} is gated: only users who accepted its terms can download it"
        yield unset_secret((*where, "huggingFaceToken"), what, f"a token with read access to {model}")


def warn_of_unknown(model: str) -> None:
    if model not in language_models():
        pulumi.log.warn(f"model {model} is unknown: its GPU memory and its context length cannot be checked in advance")


def token_secret(workload: str, name: str, token: SecretStr | None, context: WorkloadContext) -> list[pulumi.Resource]:
    if token is None:
        return []
    return [
        kubernetes.core.v1.Secret(
            f"{workload}-token",
            metadata={"name": name, "namespace": context.namespace},
            string_data={_VARIABLE: pulumi.Output.secret(token.get_secret_value())},
            opts=context.child(),
        )
    ]


def token_variable(secret: str) -> Manifest:
    """Returns the container's variable, which refers to the Secret, so that manifests do not show the token."""
    return {"name": _VARIABLE, "valueFrom": {"secretKeyRef": {"name": secret, "key": _VARIABLE}}}
