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
    """What happens to jobs on a node whose check fails (taint `aznhc=failed`). With `NoSchedule`, they keep running for
    `graceMinutes`. With `NoExecute`, they are ended within about ten minutes, after AppWrapper could move them.
    """
    grace_minutes: Annotated[int, Field(ge=0, le=MAX_GRACE), PLAIN_DIGITS] = 60
    """After which jobs on a bad node are ended: AppWrapper gets its label, then the taint is `NoExecute`."""

    @property
    def failure_effect(self) -> str | None:
        """The effect of the taint that a check's pod sets. The CronJob makes it `NoExecute` later."""
        return "NoSchedule"
