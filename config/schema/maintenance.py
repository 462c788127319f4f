"""How nodes get patches, and when."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from config.schema.base import AS_TEXT, PLAIN_DIGITS, Model, may_be, unfit

NodeOsChannel = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]
ROLLING: tuple[NodeOsChannel, ...] = ("SecurityPatch", "NodeImage")
"""Channels by which AKS rolls nodes to new images, in its window if it has one."""


def _clock(value: Any) -> Any:
    """Refuses `9:00`, `14.30`, `22h`, `+1` and `+0530`, and suggests the same time in the form that AKS takes."""
    found = re.fullmatch(r"([+-]?)(\d{1,2})(?:h|[:.](\d\d)(?::00)?)?|([+-])(\d\d)(\d\d)", str(value))
    if not found:
        return value
    read = f"{found[1] or found[4] or ''}{found[2] or found[5]:0>2}:{found[3] or found[6] or '00'}"
    if read != value:
        raise unfit(f"is {value!r}", [read, None])
    return value


class MaintenanceWindow(Model):
    """When AKS may roll nodes to new images, each week."""

    model_config = ConfigDict(json_schema_extra={"text_is": "day"})

    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] = "Sunday"
    """Its day of the week."""
    start_time: Annotated[
        str,
        StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$"),
        AS_TEXT,
        BeforeValidator(_clock),
        may_be('a time of the day, as in "02:00"'),
    ] = "02:00"
    """When it opens."""
    hours: Annotated[int, Field(ge=4, le=24), PLAIN_DIGITS] = 4
    """For how long, 4 to 24 hours."""
    utc_offset: Annotated[
        str,
        StringConstraints(pattern=r"^[+-](0\d|1[0-4]):[0-5]\d$"),
        BeforeValidator(_clock),
        may_be('an offset from UTC, as in "+05:30" or "-07:00"'),
    ] = "+00:00"
    """Of its time zone."""


def reimages(before: str, after: str) -> bool:
    """Whether AKS makes all nodes anew for another channel ("Node OS channel changes that cause a reimage", AKS's page
    on node OS images).
    """
    return before != after and (after == "Unmanaged" or (before, after) == ("Unmanaged", "None"))
