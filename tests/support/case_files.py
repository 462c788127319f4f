"""Reads tables of test cases from YAML files in `cases` beside the tests."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from config.data import data
from simulator.host.paths import ROOT

MAX_TITLE = 60


def read(test: str, name: str = "") -> Any:
    """Returns a copy, because an anchor repeats values: a test that changes a case must not affect another."""
    name = name or Path(test).stem.removeprefix("test_")
    return _filled(_content(Path(test).with_name("cases") / f"{name}.yaml"), {})


@functools.cache
def _content(file: Path) -> Any:
    return data.parsed(file.read_text("utf-8"))


def bad_input() -> dict[str, Any]:
    """Returns the cases in tests/unit/config/bad_input by name.

    `stack` has keys of a stack file; `problems` the expected problems with their fixes. `rounds`: how often commands
    are applied, if more than once. `name`: the stack, by default `dev`. `platforms` has keys of platform stacks by
    name; `others` outputs of other stacks.
    """
    known = {"stack", "problems", "rounds", "name", "platforms", "others"}
    tables = [_content(file) for file in sorted((ROOT / "tests/unit/config/bad_input").glob("*.yaml"))]
    cases = {name: _filled(case, {}) for table in tables for name, case in table.items()}
    assert len(cases) == sum(map(len, tables)), "two files have a case of the same name"
    assert [name for name, case in cases.items() if not case.keys() <= known] == []
    return cases


def case_table(test: str, key: str, /, *, file: str = "", **texts: str) -> pytest.MarkDecorator:
    """Returns the mark that runs a test for each case under the key of `cases/<file>.yaml`.

    A case has the test's arguments by name. Its id is its key in a map, otherwise from its values (tests/conftest.py).
    `texts` replace the placeholders `<name>` in all strings.
    """
    found = _filled(read(test, file)[key], texts)
    cases = list(found.values()) if isinstance(found, dict) else found
    names = list(cases[0])
    for case in cases:
        assert set(case) == set(names), f"{key}: {case} does not have the arguments {names}"
    values = [tuple(case[name] for name in names) for case in cases]
    return pytest.mark.parametrize(names, values, ids=list(found) if isinstance(found, dict) else None)


def title(value: Any) -> str:
    """Raises TypeError if a value's text differs between processes."""
    return _text(value)[:MAX_TITLE].encode("unicode_escape").decode() or "empty"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ", ".join(_text(getattr(value, field.name)) for field in dataclasses.fields(value))
    if value is None or isinstance(value, str | int | float):
        return " ".join(str(value).split())
    raise TypeError(value)


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, texts) for each in value]
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"<{name}>", text)
    return value
