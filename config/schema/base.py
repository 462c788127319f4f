"""The base class and the common types of all settings models."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidatorFunctionWrapHandler, field_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from config.data.near import words_of


class Model(BaseModel):
    """The base of all settings models: immutable, without unknown keys, camelCase in stack files, snake_case in Python.

    Validation is not strict: Pulumi passes scalars as text, so "2" is a number and "true" is a boolean. The loader
    validates by alias only: field names are for Python code.

    The first paragraph of a field's docstring is for users: `python -m tools.reference` copies it to
    docs/configuration.md, Pulumi.yaml and stack-file.schema.json. Other paragraphs are for developers.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _true_or_false(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        read = handler(value)
        if isinstance(read, bool) and not isinstance(value, bool) and value not in ("true", "false"):
            raise unfit(f"is {value!r}", read)
        return read


def may_be(text: str) -> FieldInfo:
    """Returns an `Annotated` marker with allowed values for messages, if the type shows too little."""
    info: FieldInfo = Field(json_schema_extra={"allowed": text})
    return info


def protects(rule: list[Any] | Literal["stated", "limit", "letters", "ranges"]) -> FieldInfo:
    """Returns an `Annotated` marker of a field that protects access or data: no suggested fix may weaken its value.

    A list has the choices, strongest first. `stated`: no fix unsets the value or removes an entry. `limit`: no fix
    raises the number. `letters`: no fix adds a letter. `ranges`: no fix adds an address.
    """
    info: FieldInfo = Field(json_schema_extra={"protects": rule})
    return info


def stated(model: Model) -> dict[str, Any]:
    return {name: value for name, value in model if name in model.model_fields_set}


def field_name(model: type[Model], key: str) -> str:
    """Returns the field that a stack-file key sets; raises StopIteration for an unknown key."""
    return next(name for name, field in model.model_fields.items() if field.alias == key)


def at(model: Model, key: str) -> Any:
    return getattr(model, field_name(type(model), key))


UNFIT: Final = "unfit"


@dataclass(frozen=True)
class Unfit:
    """An error of a validator, at the validated key or at a key `below` it."""

    what: str
    instead: object = None
    """The value to set instead; None if only the user knows it."""
    below: tuple[str | int, ...] = ()
    allowed: str = ""
    known: Collection[str] = ()
    """The valid keys at this place; an unknown key may misspell one of them."""


def unfit(what: str, instead: object, *below: str | int, allowed: str = "") -> PydanticCustomError:
    return unfits([Unfit(what, instead, below, allowed)])


def unfits(faults: list[Unfit]) -> PydanticCustomError:
    return PydanticCustomError(UNFIT, "{what}", {"what": faults[0].what, "faults": faults})


def location_of(error: ErrorDetails) -> tuple[str | int, ...]:
    faults = error.get("ctx", {}).get("faults")
    return (*error["loc"], *faults[0].below) if faults else error["loc"]


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


def number_in(value: Any, name: str = "usd") -> float:
    """Returns the number in text such as `$4,50`, `8 nodes` or `3d`; 0 for other text, or for a unit that is not in
    `name`.
    """
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
"""A validator for non-negative whole numbers: `true` is not 1, and 1_0 is not 10.

Place it after the bounds in `Annotated`; otherwise, pydantic's schema and our messages lack the bounds.
"""

Count = Annotated[int, Field(ge=1), PLAIN_DIGITS]

EMPTY_IS_UNSET = BeforeValidator(lambda value: None if value == "" else value)


def _as_text(value: Any) -> Any:
    """Returns numbers as text, because YAML reads an unquoted 1.35 as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


AS_TEXT = BeforeValidator(_as_text)
"""A validator for text with a pattern. Place it after the pattern (see `PLAIN_DIGITS`)."""
Text = Annotated[str, AS_TEXT]
