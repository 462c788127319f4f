"""What users read of the settings is the models': every key, with its default and its meaning."""

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
def test_files_are_as_written_from_the_models(file: Path) -> None:
    assert file.read_text("utf-8") == reference.written(file), "meant? then run: python -m tools.reference"


def models(top: type[BaseModel]) -> list[type[BaseModel]]:
    below = [found for field in top.model_fields.values() if (found := model_in(field.annotation))]
    return [top, *(each for model in below for each in models(model))]


@pytest.mark.parametrize(
    "model", dict.fromkeys([*models(STACK_FILE), *(each.options for each in INVENTORY.workloads.values())])
)
def test_every_key_says_what_it_means(model: type[BaseModel]) -> None:
    """In a docstring below the field."""
    assert model.model_fields.keys() - meanings(model).keys() == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", PAGE], ids=lambda page: page.name)
def test_list_of_workloads_has_all(page: Path) -> None:
    (meaning,) = (row[2] for row in rows(page, "key") if row[0] == "`workloads`")
    named = re.findall(r"`([\w-]+)`", meaning)
    assert named == sorted(workloads.find()), f"the row `workloads` of {page.name} has to name each"


def leads_to(key: str, known: str) -> bool:
    """Whether `key` is a documented key or what holds it, where `<key>` and `<name>` stand for any name."""
    given, documented = key.split("."), known.split(".")
    pairs = zip(given, documented, strict=False)
    return len(given) <= len(documented) and all(want in ("<key>", "<name>", have) for have, want in pairs)


def test_settings_that_examples_set_exist() -> None:
    below = (row[0] for row in reference.keys(STACK_FILE, folded=False))
    settable = {
        *(row[0].strip("`") for row in rows(PAGE, "key")),
        *below,
        "azure-native:location",
        "pulumi:disable-default-providers",
    }
    for command in [text for page in PAGES for text in code(page)]:
        for key in re.findall(r"pulumi config (?:set|rm) (?:--\w+ )*'?([\w:.-]+)", command):
            assert any(leads_to(key, known) for known in settable), command
