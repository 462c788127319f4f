from __future__ import annotations

import pytest

from simulator.tools.catalogue import Tool
from simulator.tools.errors import ToolError
from tests.unit.simulator.tools.conftest import Workshop

FAKE_NPM = """#!/bin/sh
set -eu
echo "$@" >>"$FAKE_GO_CALLS"
mkdir -p node_modules/.bin
printf '#!/bin/sh\\n' >node_modules/.bin/hello
chmod +x node_modules/.bin/hello
eval "${FAKE_NPM_THEN:-:}"
"""


@pytest.fixture
def npm_tool(workshop: Workshop) -> Tool:
    module = workshop.root / "modules" / "hello"
    (module / "package.json").write_text('{"dependencies": {"hello": "1.0"}}')
    (module / "package-lock.json").write_text("{}")
    for name, script in {"npm": FAKE_NPM, "node": "#!/bin/sh\necho v20.1.0\n"}.items():
        (workshop.root / "path" / name).write_text(script)
        (workshop.root / "path" / name).chmod(0o755)
    return workshop.tool(build=None, npm={"module": "hello", "node": 20})


def test_npm_installs_each_lock_once_and_runs_no_scripts(workshop: Workshop, npm_tool: Tool) -> None:
    for _ in range(2):
        workshop.installer(npm_tool).install([npm_tool])
    [call] = workshop.calls.read_text().splitlines()
    assert call.startswith("ci --ignore-scripts ")
    assert (workshop.root / "cache" / "bin" / "hello").exists()
    (workshop.root / "modules" / "hello" / "package-lock.json").write_text("{ }")
    workshop.installer(npm_tool).install([npm_tool])
    assert workshop.builds == 2


def test_reports_a_failed_npm(workshop: Workshop, npm_tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NPM_THEN", "echo npm error code ENOTFOUND; exit 1")
    with pytest.raises(ToolError, match=r"exit code 1\).*\n.*ENOTFOUND\n.*npm config get registry"):
        workshop.installer(npm_tool).install([npm_tool])
    assert not list((workshop.root / "cache").glob("tools/*"))


def test_rejects_a_python_package_with_another_hash(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(workshop.root))
    (workshop.root / "hello-1.0-py3-none-any.whl").write_text("tampered")
    (workshop.root / "modules" / "hello" / "requirements.txt").write_text(f"hello==1.0 --hash=sha256:{'0' * 64}\n")
    tool = workshop.tool(build=None, pip={"module": "hello"})
    with pytest.raises(ToolError, match=r"exit code 1\)(.|\n)*DO NOT MATCH THE HASHES(.|\n)*pip config list"):
        workshop.installer(tool).install([tool])
    assert not list((workshop.root / "cache").glob("tools/*"))
