"""Tables of cases in YAML files, in the folder `cases` beside their tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml


def read(test: str, name: str) -> Any:
    """Returns the content of `cases/<name>.yaml` beside the test's file."""
    return yaml.safe_load(Path(test).with_name("cases").joinpath(f"{name}.yaml").read_text("utf-8"))


def rows(cases: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns the values of each case, in the order in which the file has them."""
    return [tuple(case.values()) for case in cases]
