"""Options of JupyterLab, under `workloadOptions.jupyterlab`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, may_be
from config.schema.workload import WorkloadOptions

NAME = "jupyterlab"

Password = Annotated[
    SecretStr,
    # Pulumi passes 12345 as a number.
    BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value),
    may_be("a password"),
]


class JupyterLabOptions(WorkloadOptions):
    """Options of JupyterLab."""

    password: Annotated[Password | None, EMPTY_IS_UNSET] = None
    """Password; required. Set it with `--secret`. Only its hash reaches the cluster."""
    gpus: Annotated[int, Field(ge=0), PLAIN_DIGITS] = 0
    """GPUs that JupyterLab holds while it runs, at most the GPUs of one node."""
    fs_size_gi: Annotated[int, Field(ge=1, le=102400), PLAIN_DIGITS] = 100
    """Size of the file share, GiB; it can grow but not shrink.

    Azure's largest is 100 TiB.
    """

    @property
    def keeps_files(self) -> bool:
        return True
