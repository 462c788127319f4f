"""The tables of settings in docs/configuration.md are the models': every key, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import workloads
from config.models import StackFile
from simulator.paths import ROOT
from tests.docs.pages import PAGES, code, rows

PAGE = ROOT / "docs" / "configuration.md"


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a type is or holds: itself, `Model | None`, `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)


def shown(default: Any) -> str:
    """A default as the table has it; empty for what is not set."""
    if isinstance(default, tuple):
        return ", ".join(map(shown, default))
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default in (None, {}, PydanticUndefined) else str(default)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Paths and defaults of all settings below a model."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        below = model_in(field.annotation)
        if path == "workloadOptions":
            yield from options()
        elif below:
            yield from keys(below, f"{path}.<key>." if "dict[" in str(field.annotation) else f"{path}.")
        else:
            yield path, shown(field.default)


def options() -> Iterator[tuple[str, str]]:
    """Options of workloads; those that all of them have stand once, for any name."""
    every = {name: dict(keys(workload.options)) for name, workload in workloads.find().items()}
    common = set.intersection(*({*options.items()} for options in every.values()))
    yield from ((f"workloadOptions.<name>.{option}", default) for option, default in common)
    for name, options in every.items():
        yield from ((f"workloadOptions.{name}.{option}", default) for option, default in options.items() - common)


def documented() -> dict[str, str]:
    return {row[0].strip("`"): row[1].strip("`") for row in rows(PAGE, "key")}


def test_table_has_every_setting_with_its_default() -> None:
    assert documented() == dict(keys(StackFile))


@pytest.mark.parametrize("page", [ROOT / "README.md", PAGE], ids=lambda page: page.name)
def test_list_of_workloads_has_all(page: Path) -> None:
    (meaning,) = (row[2] for row in rows(page, "key") if row[0] == "`workloads`")
    assert re.findall(r"`([\w-]+)`", meaning) == sorted(workloads.find())


def leads_to(key: str, known: str) -> bool:
    """Whether `key` is a documented key or what holds it, where `<key>` and `<name>` stand for any name."""
    given, documented = key.split("."), known.split(".")
    pairs = zip(given, documented, strict=False)
    return len(given) <= len(documented) and all(want in ("<key>", "<name>", have) for have, want in pairs)


def test_settings_that_examples_set_exist() -> None:
    settable = {*documented(), "azure-native:location"}
    for command in [text for page in PAGES for text in code(page)]:
        for key in re.findall(r"pulumi config (?:set|rm) (?:--\w+ )*'?([\w:.-]+)", command):
            assert any(leads_to(key, known) for known in settable), command
