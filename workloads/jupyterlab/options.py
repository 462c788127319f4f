"""Options of JupyterLab, under `workloadOptions.jupyterlab`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from config.schema.base import EMPTY_IS_UNSET, PLAIN_DIGITS, may_be
from config.schema.workload import WorkloadOptions

NAME = "jupyterlab"

Password = Annotated[
    SecretStr,
    # Pulumi hands 12345 over as a number.
    BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value),
    may_be("a password of your own"),
]


class JupyterLabOptions(WorkloadOptions):
    """How much of a node it takes, and who may log in."""

    password: Annotated[Password | None, EMPTY_IS_UNSET] = None
    """Must be set, with `--secret`; only its hash reaches the cluster."""
    gpus: Annotated[int, Field(ge=0), PLAIN_DIGITS] = 0
    """GPUs that it holds as long as it runs, at most those of a node."""
    fs_size_gi: Annotated[int, Field(ge=1, le=102400), PLAIN_DIGITS] = 100
    """Size of its file share, GiB; it can grow, not shrink.

    Azure's largest is 100 TiB.
    """

    @property
    def keeps_files(self) -> bool:
        """Its file share."""
        return True
