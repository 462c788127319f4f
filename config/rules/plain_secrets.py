"""Options that must be secrets: none may stand in a stack file as plain text, which is committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import SecretStr

from config.problems.errors import Problem
from config.problems.fixes import Path, secret_command
from config.schema.workload import WorkloadOptions


def plain_secrets(options: Mapping[str, WorkloadOptions], *, encrypted: bool) -> Iterator[Problem]:
    """One problem for each secret of these workloads that is set, unless Pulumi says that `workloadOptions` is secret.

    It says so of the whole key, whichever value below it is encrypted.
    """
    for workload, chosen in options.items() if not encrypted else ():
        for name, field in type(chosen).model_fields.items():
            if isinstance(getattr(chosen, name), SecretStr):
                path = ("workloadOptions", workload, field.alias or name)
                what = "stands in the stack file as plain text; anybody who reads that knows it, so choose another"
                yield Problem(path, what, "an encrypted value", secret_command(path), shows_value=False)


def unset_secret(path: Path, what: str, allowed: str) -> Problem:
    """The problem of a secret that must be set."""
    return Problem(path, what, allowed, secret_command(path), shows_value=False)
