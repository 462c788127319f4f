"""Tables of cases in YAML files, in the folder `cases` beside their tests."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.host.paths import ROOT


@functools.cache
def read(test: str, name: str) -> Any:
    """Returns the content of `cases/<name>.yaml` beside the test's file."""
    return yaml.safe_load(Path(test).with_name("cases").joinpath(f"{name}.yaml").read_text("utf-8"))


def bad_input() -> dict[str, Any]:
    """Returns all cases of the files in tests/unit/config/bad_input, by name.

    `stack` holds keys of a stack file, `says` what is wrong with it, each with its fix; `by_hand`: a fix is in words;
    `rounds`: how often commands are applied, if more than once. `name` is the stack's, dev unless set; `platforms`
    holds other stacks' keys by name, `others` outputs of stacks that are no platforms.
    """
    files = sorted((ROOT / "tests/unit/config/bad_input").glob("*.yaml"))
    return {name: case for file in files for name, case in yaml.safe_load(file.read_text("utf-8")).items()}


def rows(cases: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns the values of each case, in the order in which the file has them."""
    return [tuple(case.values()) for case in cases]


def case_table(test: str, key: str, /, **texts: str) -> pytest.MarkDecorator:
    """Returns the mark that runs a test once for each case under the key of `cases/<name of the test's file>.yaml`.

    A case has a value for each of the test's arguments. Cases of a map are called as their keys. `texts` replace the
    placeholders `<name>` in all texts.
    """
    found = _filled(read(test, Path(test).stem.removeprefix("test_"))[key], texts)
    cases = list(found.values()) if isinstance(found, dict) else found
    return pytest.mark.parametrize(list(cases[0]), rows(cases), ids=list(found) if isinstance(found, dict) else None)


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, texts) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, texts) for each in value]
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"<{name}>", text)
    return value
