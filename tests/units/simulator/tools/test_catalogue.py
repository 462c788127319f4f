"""The pins of tools.yaml and those of the Go modules are the same."""

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
    pins = (CATALOGUE.go_module(source) / "go.mod").read_text()
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


def test_urls_and_flags_are_completed() -> None:
    for tool in CATALOGUE.tools:
        sources = [tool.release.url, tool.release.checksums, *tool.release.members] if tool.release else []
        flags = [tool.build.ldflags] if tool.build else []
        assert not [text for text in map(tool.fill, sources + flags) if "{" in text]


def test_program_needs_nothing_but_pulumi() -> None:
    assert [tool.name for tool in CATALOGUE.needed_for("program")] == ["pulumi"]


def test_unknown_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--only", "pulumi,pulumy"]) == 1
    assert capsys.readouterr().err.startswith("error: No such tool: pulumy. The tools are: pulumi, kube-apiserver,")


def test_check_names_what_is_missing_and_how_to_make_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path))
    assert cli.main(["--check", "--for", "program"]) == 1
    assert capsys.readouterr().err == ("error: missing: pulumi. Make them: python -m simulator.tools --only pulumi\n")
