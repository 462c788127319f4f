from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

import workloads
from config.schema.pools import gpu_sizes
from tests.support.case_files import bad_input
from tests.support.settings import platform, problems
from tests.support.sizes import H100
from tests.unit.config import commands, suggested

KNOWN = workloads.find()
CASES = bad_input()
ROWS = [
    (row["keys"], row["fix"])
    for rows in yaml.safe_load(Path(__file__).with_name("suggestions.yaml").read_text("utf-8")).values()
    for row in rows
]


@pytest.mark.parametrize(("keys", "fix"), ROWS)
def test_suggestion(keys: dict[str, Any], fix: str) -> None:
    stack = ({} if "pools" in keys else {"vmSku": H100, "nodeCount": 2}) | keys
    assert problems(stack, known=KNOWN)[0].fix == fix
    suggested.check(stack, lambda stack: problems(stack, known=KNOWN))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_fixes_of_invalid_settings_lead_to_a_valid_stack(case: dict[str, Any]) -> None:
    others = {name: platform(stack) for name, stack in case.get("platforms", {}).items()} | case.get("others", {})
    name = case.get("name", "dev")
    rounds, left = suggested.check(case["stack"], lambda stack: problems(stack, name=name, others=others))
    if commands.are_commands(case):
        assert (rounds, left) == (case.get("rounds", 1), [])


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_no_command_makes_a_stack_more_expensive(name: str) -> None:
    for size, nodes in itertools.product(gpu_sizes(), (0, 1, 2, 5)):
        stack = {"vmSku": size, "nodeCount": nodes, "workloads": name}
        suggested.check(stack, lambda stack: problems(stack, known=KNOWN))
