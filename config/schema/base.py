"""Base and common types of every model of the settings."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidatorFunctionWrapHandler, field_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from config.data.near import words_of


class Model(BaseModel):
    """camelCase in stack files, snake_case in Python; immutable; an unknown key is an error.

    Not strict on purpose: Pulumi hands scalars over as text, so "2" is a number and "true" is true.
    Field names are for Python code; the loader validates by alias only.

    A field's docstring begins with what the key means, in a paragraph for users: from it are made the tables of
    docs/configuration.md, Pulumi.yaml and stack-file.schema.json (`python -m tools.reference`). What stands
    behind is for readers of the code.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _true_or_false(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        """Refuses what pydantic also takes for a boolean: yes, on, 1, and their like in any case."""
        read = handler(value)
        if isinstance(read, bool) and not isinstance(value, bool) and value not in ("true", "false"):
            raise unfit(f"is {value!r}", read)
        return read


def may_be(text: str) -> FieldInfo:
    """For `Annotated`: what messages say is allowed there, where the type alone says too little."""
    info: FieldInfo = Field(json_schema_extra={"allowed": text})
    return info


def protects(rule: list[Any] | Literal["stated", "limit", "letters", "ranges"]) -> FieldInfo:
    """Marks a field that protects access or data, for `Annotated`: no fix may weaken what the user has stated there.

    A list has the choices, the strongest first. `stated`: it stays set, with as many entries. `limit`: no higher
    number. `letters`: no further letter. `ranges`: no address beyond those stated.
    """
    info: FieldInfo = Field(json_schema_extra={"protects": rule})
    return info


def stated(model: Model) -> dict[str, Any]:
    """Returns the fields that the user has set, with their values."""
    return {name: value for name, value in model if name in model.model_fields_set}


def field_name(model: type[Model], key: str) -> str:
    """The field that a key of stack files is read into. Raises StopIteration for a key that the model does not have."""
    return next(name for name, field in model.model_fields.items() if field.alias == key)


def at(model: Model, key: str) -> Any:
    """What a model holds under a key of stack files."""
    return getattr(model, field_name(type(model), key))


UNFIT: Final = "unfit"


@dataclass(frozen=True)
class Unfit:
    """What a validator finds wrong: at its own key, or at one `below` it."""

    what: str
    instead: object = None
    """What to set in its place; None if only the user knows."""
    below: tuple[str | int, ...] = ()
    allowed: str = ""
    """What may stand there, where the type alone says too much."""
    known: Collection[str] = ()
    """The keys that may stand there, of which it is none: it may be one of them, mistyped."""


def unfit(what: str, instead: object, *below: str | int, allowed: str = "") -> PydanticCustomError:
    """What a validator raises for one fault."""
    return unfits([Unfit(what, instead, below, allowed)])


def unfits(faults: list[Unfit]) -> PydanticCustomError:
    """What a validator raises for all that it finds."""
    return PydanticCustomError(UNFIT, "{what}", {"what": faults[0].what, "faults": faults})


_SHORT = {
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "gib": "gi",
    "$": "usd",
}
"""Units by other names."""


def number_in(value: Any, name: str = "usd") -> float:
    """Returns the positive number in `$4,50`, `8 nodes` or `3d`, or 0 where the unit is not of the name."""
    found = re.fullmatch(
        r"(?:\$|USD ?)?\+?([0-9]{1,18}(?:\.[0-9]+|,[0-9]{1,2})?(?:[eE]\+?[0-9])?) ?([A-Za-z$]*)", str(value).strip()
    )
    if not found or isinstance(value, bool):
        return 0.0
    unit, words = found[2].lower(), words_of(name).split("-")[1:-1]
    units = {*words, *(["node"] if {*words[-1:]} & {"count", "min", "max"} else [])}
    if unit and _SHORT.get(unit, unit.removesuffix("s")) not in units:
        return 0.0
    return float(found[1].replace(",", "."))


def _plain_digits(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch("[0-9]+", value)):
        raise ValueError("not a number in plain digits")
    return value


PLAIN_DIGITS = BeforeValidator(_plain_digits)
"""For whole numbers that are not negative: `true` is not 1, and 1_0 is not 10.

It stands behind bounds: before them, pydantic's schema, and so our messages, would not have them.
"""

Count = Annotated[int, Field(ge=1), PLAIN_DIGITS]

EMPTY_IS_UNSET = BeforeValidator(lambda value: None if value == "" else value)
"""For optional text."""


def _as_text(value: Any) -> Any:
    """YAML reads an unquoted 1.35 as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


AS_TEXT = BeforeValidator(_as_text)
"""For text of a pattern; it stands behind that, as `PLAIN_DIGITS` does behind bounds."""
Text = Annotated[str, AS_TEXT]
"""A str, also when YAML took it for a number."""
