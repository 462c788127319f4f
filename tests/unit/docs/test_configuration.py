from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import workloads
from simulator.host.paths import ROOT
from tests.support.golden import FILES, keys
from tests.support.pages import PAGES, code, rows
from tools import reference
from tools.meanings import meanings
from tools.reference import INVENTORY, PAGE, STACK_FILE, model_in

JOB_TYPES = {"Indexed Job": "completionMode: Indexed", "Volcano Job": "batch.volcano.sh/v1alpha1:Job"}
"""Texts of golden files by the README's job type, if it is not a kind."""


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


def test_the_list_of_workloads_is_complete() -> None:
    (meaning,) = (row[2] for row in rows(PAGE, "key") if row[0] == "`workloads`")
    assert re.findall(r"`([\w-]+)`", meaning) == sorted(workloads.find())


def test_the_readme_has_each_workload_with_its_stack_file_and_job_type() -> None:
    found = {re.findall(r"`(.+)`", row[0])[0]: row for row in rows(ROOT / "README.md", "workload")}
    assert list(found) == sorted(workloads.find())
    for name, (_, _, job_type, scheduler, *_, stack_file) in found.items():
        assert keys(name)["workloads"] == name
        assert stack_file == f"`{FILES[name].name}`"
        resources = (ROOT / "tests" / "golden" / f"{name}.yaml").read_text("utf-8")
        for part in job_type.split(" in an "):
            assert re.search(JOB_TYPES.get(part, rf"\b{part}\b"), resources), f"{name}: {part}"
        assert ("Volcano" in scheduler) == (JOB_TYPES["Volcano Job"] in resources)


def matches(key: str, known: str) -> bool:
    """`<key>` and `<name>` match any name. A key above a documented one also matches."""
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
