"""The reference of settings, generated from their models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import workloads
from simulator.host.paths import ROOT
from tests.support.pages import PAGES, code, rows
from tools import reference
from tools.meanings import meanings
from tools.reference import INVENTORY, PAGE, STACK_FILE, model_in


@pytest.mark.parametrize("file", reference.FILES, ids=lambda file: file.name)
def test_generated_files_are_current(file: Path) -> None:
    assert file.read_text("utf-8") == reference.written(file), "If this is intended, run: python -m tools.reference"


def models(top: type[BaseModel]) -> list[type[BaseModel]]:
    below = [found for field in top.model_fields.values() if (found := model_in(field.annotation))]
    return [top, *(each for model in below for each in models(model))]


@pytest.mark.parametrize(
    "model", dict.fromkeys([*models(STACK_FILE), *(each.options for each in INVENTORY.workloads.values())])
)
def test_every_key_has_a_meaning(model: type[BaseModel]) -> None:
    assert model.model_fields.keys() - meanings(model).keys() == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", PAGE], ids=lambda page: page.name)
def test_the_list_of_workloads_is_complete(page: Path) -> None:
    (meaning,) = (row[2] for row in rows(page, "key") if row[0] == "`workloads`")
    named = re.findall(r"`([\w-]+)`", meaning)
    assert named == sorted(workloads.find()), f"the row `workloads` of {page.name} must list all workloads"


def matches(key: str, known: str) -> bool:
    """Returns whether `key` is a documented key or above one. `<key>` and `<name>` match any name."""
    given, documented = key.split("."), known.split(".")
    pairs = zip(given, documented, strict=False)
    return len(given) <= len(documented) and all(want in ("<key>", "<name>", have) for have, want in pairs)


def test_settings_in_examples_exist() -> None:
    below = (row[0] for row in reference.keys(STACK_FILE, folded=False))
    settable = {
        *(row[0].strip("`") for row in rows(PAGE, "key")),
        *below,
        "azure-native:location",
        "pulumi:disable-default-providers",
    }
    for command in [text for page in PAGES for text in code(page)]:
        for key in re.findall(r"pulumi config (?:set|rm) (?:--\w+ )*'?([\w:.-]+)", command):
            assert any(matches(key, known) for known in settable), command
