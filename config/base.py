"""Base and common types of every model of the settings."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """camelCase in stack files, snake_case in Python; immutable; an unknown key is an error.

    Not strict on purpose: Pulumi hands scalars over as text, so "2" is a number and "true" is yes.
    Field names are for Python code; the loader validates by alias only.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("not a number")  # noqa: TRY004  pydantic reports ValueError only
    return value


NOT_BOOL = BeforeValidator(_no_truth_value)
"""For whole numbers: `true` is not 1."""


def _as_text(value: Any) -> Any:
    """YAML reads an unquoted 1.35 as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_as_text)]
"""A str, also when YAML took it for a number."""
