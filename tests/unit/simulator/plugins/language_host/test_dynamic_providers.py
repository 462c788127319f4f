from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.command import emulated_plugins
from tests.support.plugin_stack import PLUGINS, PluginStack
from tests.support.waiting import eventually

LAUNCHER = PLUGINS / "pulumi-resource-pulumi-python"
MODULE = """
from pulumi.dynamic import CreateResult, Resource, ResourceProvider

class Issuer(ResourceProvider):
    def create(self, props):
        if not props["audience"]:
            raise ValueError("a token needs an audience")
        return CreateResult("1", {**props, "token": f"hunter2 for {props['audience']}"})

class Token(Resource):
    token: object

    def __init__(self, name, audience, opts=None):
        super().__init__(Issuer(), name, {"audience": audience, "token": None}, opts)
"""
PROGRAM = """
import pulumi
from issuer import Token

token = Token("token", "storage", pulumi.ResourceOptions(additional_secret_outputs=["token"]))
pulumi.export("token", token.token)
"""


@pytest.fixture
def stack(tmp_path: Path) -> PluginStack:
    made = PluginStack(tmp_path / "stack", kubeconfig="")
    (made.folder / "issuer.py").write_text(MODULE)
    (made.folder / "__main__.py").write_text(PROGRAM)
    return made


@pytest.mark.simulator
def test_creates_a_resource_of_a_dynamic_provider(stack: PluginStack) -> None:
    up = stack.up()
    assert up.code == 0, up.output
    assert stack.pulumi("stack", "output", "token", "--show-secrets").output.strip() == "hunter2 for storage"
    kept = "".join(path.read_text() for path in (stack.folder / "state").rglob("*.json"))
    assert "hunter2" not in kept
    again = stack.pulumi("preview", "--expect-no-changes")
    assert again.code == 0, again.output


@pytest.mark.simulator
def test_shows_the_error_of_a_dynamic_provider(stack: PluginStack) -> None:
    (stack.folder / "__main__.py").write_text(PROGRAM.replace('"storage"', '""'))
    up = stack.up()
    assert up.code != 0
    assert "ValueError: a token needs an audience" in up.output


def test_uses_the_official_host_next_to_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path / "home"))
    official = tmp_path / "tools" / LAUNCHER.name
    official.parent.mkdir()
    monkeypatch.setattr("simulator.host.paths.tools_bin", lambda: official.parent)
    (plugin,) = (each for each in emulated_plugins.ALL if each.name == LAUNCHER.name)
    assert plugin.serving() == LAUNCHER
    official.touch(mode=0o755)
    assert plugin.serving() == official


def test_ends_with_a_killed_engine() -> None:
    engine = "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); time.sleep(600)"
    inside = {**os.environ, "SIMULATOR_PYTHON": sys.executable}
    command = [sys.executable, "-c", engine, str(LAUNCHER)]
    with subprocess.Popen(command, env=inside, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        host, port = (int(parent.stdout.readline()) for _ in range(2))
        assert port > 0, "it serves"
        parent.kill()
    eventually(lambda: not Path(f"/proc/{host}").exists(), "it has ended")
