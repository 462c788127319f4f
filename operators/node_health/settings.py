"""Settings of what becomes of nodes whose check has failed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from config.schema.base import PLAIN_DIGITS
from config.schema.operators import OperatorSettings

MAX_GRACE = 7 * 24 * 60
"""Minutes."""


class NodeHealthSettings(OperatorSettings):
    """The taint `aznhc=failed`."""

    taint_effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"
    """Of the taint `aznhc=failed` that a node gets as its check fails: by `NoSchedule` jobs there keep running for
    `graceMinutes`; `NoExecute` ends them at once.
    """
    grace_minutes: Annotated[int, Field(ge=0, le=MAX_GRACE), PLAIN_DIGITS] = 60
    """After which jobs on a node that has failed are ended: then its taint is `NoExecute`."""

    @property
    def failure_effect(self) -> str | None:
        return self.taint_effect
