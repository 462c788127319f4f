from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.alias_generators import to_snake

import workloads
from config.data import data
from config.rules.provider_keys import provider_keys
from config.schema.inventory import Inventory
from config.schema.json_schema import paths_in
from tests.support.settings import INVENTORY, problems
from tests.support.sizes import H100

KNOWN = workloads.find()
TABLE: dict[str, str] = yaml.safe_load(Path(__file__).with_name("other_places.yaml").read_text("utf-8"))
"""Other tools' names by our setting, separated by spaces; `nothing` has names without a setting."""
ROWS = [(key, place) for place, keys in TABLE.items() for key in keys.split()]


def spellings(key: str) -> list[str]:
    section, dot, name = key.rpartition(".")
    snake = to_snake(name)
    return [f"{section}{dot}{each}" for each in (name, snake, snake.replace("_", "-"), snake.upper())]


def stack_with(key: str) -> dict[str, Any]:
    value: Any = {"abc": "x"}  # not a valid value, so that no command moves it
    for part in reversed(key.split(".")):
        value = {part: value}
    if "pools" in value:
        value["pools"]["gpu"]["vmSku"] = H100
        return {"cluster": {}, **value}
    return {"cluster": {}, "vmSku": H100, **value}


def shown(key: str) -> str:
    parts = key.split(".")
    quoted = [f'["{part}"]' if "-" in part and index else f".{part}" for index, part in enumerate(parts)]
    return "".join(quoted).removeprefix(".")


@pytest.mark.parametrize(("key", "place"), ROWS)
def test_a_name_of_another_tool_leads_to_the_setting(key: str, place: str) -> None:
    for each in spellings(key):
        found = problems(stack_with(each), known=KNOWN)
        (problem,) = (one for one in found if one.path == tuple(each.split(".")))
        words = f"in the stack file, set {place} to the value that you need, and remove {shown(each)}"
        if place == "nothing":
            words = f"remove {shown(each)} if you do not need it: no setting of this program has a similar name"
        assert problem.fix == words


def test_every_place_is_a_setting() -> None:
    options = (paths_in(spec.options, ("workloadOptions", name)) for name, spec in KNOWN.items())
    known = {path for each in options for path in each} | {*paths_in(Inventory(INVENTORY.operators, KNOWN).stack_file)}
    known |= {("workloadOptions", "*", *path[2:]) for path in known if path[0] == "workloadOptions"}
    known |= {(f"azure-native:{key}",) for key in provider_keys("azure-native")}
    assert {tuple(place.split(".")) for place in data.read("other_places.yaml")} - known == {("nothing",)}
