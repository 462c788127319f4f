"""Unit tests use only the tools of `make tools`, because a new machine has no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.host import paths
from simulator.tools import catalogue

_MADE_LATER = {tool.name for tool in catalogue.load().tools if not tool.needed_for}


@pytest.fixture(autouse=True)
def tools_of_a_new_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("long") is None:
        look = paths.tool

        def tool(name: str) -> Path:
            if name in _MADE_LATER:
                raise FileNotFoundError(
                    f"The tool {name} is built for the first pod that needs it, not for unit tests."
                )
            return look(name)

        monkeypatch.setattr(paths, "tool", tool)
