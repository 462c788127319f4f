"""Tools from npm: what is installed, what is kept, and what the user is told when it cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from simulator.tools.catalogue import Tool
from simulator.tools.errors import ToolError
from tests.units.simulator.tools.conftest import Workshop

FAKE_NPM = """#!/bin/sh
set -eu
echo "$@" >>"$FAKE_GO_CALLS"
grep -q '"hello": "1.0"' package.json
mkdir -p node_modules/.bin
printf '#!/bin/sh\\necho made\\n' >node_modules/.bin/hello
chmod +x node_modules/.bin/hello
eval "${FAKE_NPM_THEN:-:}"
"""
FAKE_NODE = "#!/bin/sh\necho ${FAKE_NODE_VERSION:-v20.1.0}\n"


@pytest.fixture
def tool(workshop: Workshop) -> Tool:
    """A tool in an npm package, and a `node` and an `npm` that are scripts."""
    module = workshop.root / "modules" / "hello"
    (module / "package.json").write_text('{"dependencies": {"hello": "1.0"}}')
    (module / "package-lock.json").write_text("{}")
    for name, script in {"npm": FAKE_NPM, "node": FAKE_NODE}.items():
        (workshop.root / "path" / name).write_text(script)
        (workshop.root / "path" / name).chmod(0o755)
    return workshop.tool(build=None, npm={"module": "hello", "node": 20})


def test_installs_once_from_the_lock_and_runs_no_scripts(workshop: Workshop, tool: Tool) -> None:
    for _ in range(2):
        workshop.installer(tool).install([tool])
    [call] = workshop.calls.read_text().splitlines()
    assert call.startswith("ci --ignore-scripts ")
    executable = workshop.root / "cache" / "bin" / "hello"
    assert subprocess.run([executable], capture_output=True, text=True, check=True).stdout == "made\n"
    assert "installed from npm" in workshop.said


def test_what_npm_keeps_goes_again(workshop: Workshop, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own cache would be in the user's home folder."""
    monkeypatch.delenv("npm_config_cache", raising=False)
    monkeypatch.setenv("FAKE_NPM_THEN", 'touch "$npm_config_cache/kept"; echo "$npm_config_cache" >>"$FAKE_GO_CALLS"')
    workshop.installer(tool).install([tool])
    cache = Path(workshop.calls.read_text().splitlines()[-1])
    assert cache.is_relative_to(workshop.root / "cache")
    assert not cache.exists()


def test_another_lock_is_installed_anew(workshop: Workshop, tool: Tool) -> None:
    workshop.installer(tool).install([tool])
    (workshop.root / "modules" / "hello" / "package-lock.json").write_text("{ }")
    workshop.installer(tool).install([tool])
    assert workshop.builds == 2


def test_npm_fails(workshop: Workshop, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NPM_THEN", "echo npm error code ENOTFOUND; exit 1")
    with pytest.raises(ToolError, match=r"npm ci exited with 1\).*\n.*ENOTFOUND\n.*npm config get registry"):
        workshop.installer(tool).install([tool])
    assert not list((workshop.root / "cache").glob("tools/*"))


def test_no_node(workshop: Workshop, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(Path(workshop.root, "nowhere")))
    with pytest.raises(ToolError, match=r"hello 1\.0 needs Node\.js 20, but there is no `node` on PATH\.\nInstall"):
        workshop.installer(tool).install([tool])


@pytest.mark.parametrize(("version", "enough"), [("v18.20.4", False), ("v20.0.0", True), ("v24.1.0", True)])
def test_age_of_node(
    workshop: Workshop, tool: Tool, monkeypatch: pytest.MonkeyPatch, version: str, enough: bool
) -> None:
    monkeypatch.setenv("FAKE_NODE_VERSION", version)
    if enough:
        workshop.installer(tool).install([tool])
    else:
        with pytest.raises(ToolError, match=rf"needs Node\.js 20, but .* says: {version}\."):
            workshop.installer(tool).install([tool])
