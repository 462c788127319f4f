"""Base of every model of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """camelCase in stack files, snake_case in Python; immutable; an unknown key is an error.

    Not strict on purpose: Pulumi hands scalars over as text, so "2" is a number and "true" is yes.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)
