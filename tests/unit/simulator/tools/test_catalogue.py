from __future__ import annotations

import json
import re

import pytest

from simulator.tools import __main__ as cli
from simulator.tools.catalogue import Tool, load

CATALOGUE = load()


@pytest.mark.parametrize("tool", [t for t in CATALOGUE.tools if t.build or t.chart], ids=lambda tool: tool.name)
def test_module_pins_the_version(tool: Tool) -> None:
    source = tool.build or tool.chart
    assert source
    pins = (CATALOGUE.module_of(source) / "go.mod").read_text()
    versions = {
        version
        for module, version in re.findall(r"^(?:require)?\s+(\S+) v(\S+)", pins, re.MULTILINE)
        if source.package == module or source.package.startswith(f"{module}/")
    }
    assert versions == {tool.version}


@pytest.mark.parametrize("tool", [tool for tool in CATALOGUE.tools if tool.npm], ids=lambda tool: tool.name)
def test_npm_lock_pins_the_version(tool: Tool) -> None:
    assert tool.npm
    packages = json.loads((CATALOGUE.modules / tool.npm.module / "package-lock.json").read_text())["packages"]
    assert packages[f"node_modules/{tool.npm.module}"]["version"] == tool.version
    assert tool.name in packages[f"node_modules/{tool.npm.module}"]["bin"]


def test_check_lists_missing_tools_and_the_command_that_installs_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path))
    assert cli.main(["--check", "--for", "program"]) == 1
    expected = "error: missing tools: pulumi. To install them: python -m simulator.tools --only pulumi\n"
    assert capsys.readouterr().err == expected
