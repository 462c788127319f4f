from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2

from simulator.host import paths
from tests.support.waiting import eventually
from tests.unit.simulator.plugins.language_host.conftest import LAUNCHER, Deployment


def test_a_program_has_its_settings_and_outputs(deployment: Deployment) -> None:
    program = """
        import pulumi
        config = pulumi.Config()
        pulumi.ComponentResource("demo:index:Part", "one")
        print("printed by the program")
        pulumi.export("size", config.require_int("size"))
        pulumi.export("secret", pulumi.Config().get_secret("key"))
        pulumi.export("names", [pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()])
        pulumi.export("preview", pulumi.runtime.is_dry_run())
    """
    config = {"demo:size": "3", "demo:key": "hidden"}
    response = deployment.run(program, config, configSecretKeys=["demo:key"], dryRun=True)
    assert response == language_pb2.RunResponse()
    assert deployment.monitor.resources == ["pulumi:pulumi:Stack demo-dev", "demo:index:Part one"]
    outputs = deployment.monitor.outputs
    assert outputs["size"] == 3
    assert outputs["preview"] is True
    assert list(outputs["names"]) == ["organization", "demo", "dev"]
    assert "hidden" not in str(outputs["names"])
    assert "4dabf18193072939515e22adb298388d" in outputs["secret"], "the signature that marks a secret"
    assert deployment.printed() == "printed by the program\n"


def test_shows_an_unhandled_error_without_frames_of_the_host(deployment: Deployment) -> None:
    response = deployment.run("import pulumi\nraise KeyError('lost')")
    assert response == language_pb2.RunResponse(bail=True), "the engine adds no error"
    [error] = deployment.engine.errors
    assert error.startswith("Program failed with an unhandled exception:\nTraceback (most recent call last):\n")
    assert error.count("  File ") == 1
    assert f'File "{deployment.folder}/__main__.py", line 2' in error
    assert deployment.printed() == ""


def test_shows_a_run_error_without_a_traceback(deployment: Deployment) -> None:
    response = deployment.run("import pulumi\nraise pulumi.RunError('nodeCount: -1 is negative')")
    assert response == language_pb2.RunResponse(bail=True)
    assert deployment.engine.errors == ["nodeCount: -1 is negative"]


def test_reports_the_exit_code_of_a_program(deployment: Deployment) -> None:
    assert deployment.run("raise SystemExit(7)").error == "the program exited with code 7"
    assert deployment.run("import os; os.kill(os.getpid(), 9)").error == "the program was ended by signal 9"
    assert deployment.engine.errors == []


def test_cancel_ends_the_program(deployment: Deployment) -> None:
    started = deployment.folder / "started"
    program = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(600)"
    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(deployment.run, program)
        eventually(started.exists)
        deployment.client.Cancel(empty_pb2.Empty(), timeout=10)
        assert response.result(timeout=30) == language_pb2.RunResponse(bail=True), "the engine reports it"


def test_a_program_ends_with_its_host(deployment: Deployment) -> None:
    pid_file = deployment.folder / "pid"
    program = f"import os, pathlib, time\npathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\ntime.sleep(600)"
    call = deployment.client.Run.future(deployment.request(program))
    eventually(lambda: pid_file.exists() and pid_file.read_text() != "")
    deployment.close()
    pid = int(pid_file.read_text())
    eventually(lambda: not alive(pid))
    assert call.done()


FAKE_GO = """#!/bin/sh
if [ "$1" = env ]; then echo go1.26.8; exit; fi
while [ "$1" != -o ]; do shift; done
test ! -e "$(dirname "$0")/broken" && touch "$2"
"""
OPERATORS = """
    import pulumi
    pulumi.ComponentResource("ai-on-aks:operators/monitoring:Monitoring", "volcano")
    pulumi.ComponentResource("ai-on-aks:operators/kueue:Kueue", "kueue")
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake `go` builds nothing, or fails with a file `broken` in the folder."""
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AI_ON_AKS_CACHE", str(tmp_path / "cache"))
    return go.parent


def test_an_update_builds_the_tools_of_declared_operators(fake_go: Path, deployment: Deployment) -> None:
    assert deployment.run(OPERATORS, dryRun=True) == language_pb2.RunResponse()
    assert not paths.cache().exists()
    assert deployment.run(OPERATORS) == language_pb2.RunResponse()
    preview, update = deployment.printed().split("The operators need tools that are not built yet: kueue-manager. ")[1:]
    assert preview == "The update builds them before anything else.\n"
    assert update.startswith("They are built now.\n")
    assert "[1/1] kueue-manager 0.19.2: built" in update


def test_registers_no_resource_without_the_tools_of_its_operator(fake_go: Path, deployment: Deployment) -> None:
    (fake_go / "broken").touch()
    assert deployment.run(OPERATORS).bail
    assert deployment.monitor.resources == []
    assert "error: kueue-manager 0.19.2 could not be built" in deployment.printed()


def test_rejects_unsupported_commands(deployment: Deployment) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(deployment.client.RunPlugin(language_pb2.RunPluginRequest(), timeout=10))
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    expected = "host cannot run plugins written in Python: install Pulumi's own Python language host."
    assert raised.value.details().endswith(expected)


def test_requires_the_plugins_of_the_sdk_packages(deployment: Deployment) -> None:
    packages = deployment.client.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest(), timeout=10).packages
    sdks = [distribution(f"pulumi-{name}").locate_file(f"pulumi_{name}") for name in ("azure_native", "kubernetes")]
    read = [json.loads(Path(str(sdk), "pulumi-plugin.json").read_text()) for sdk in sdks]
    assert [(each.kind, each.name, each.version) for each in packages] == [
        ("resource", each["name"], each["version"]) for each in read
    ]
    about = deployment.client.About(language_pb2.AboutRequest(), timeout=10)
    assert os.access(about.executable, os.X_OK)


def test_the_launcher_needs_the_environment_of_the_simulator() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SIMULATOR_PYTHON"}
    launched = subprocess.run([LAUNCHER, "127.0.0.1:1"], env=environment, capture_output=True, text=True, check=False)
    assert launched.returncode != 0
    assert "SIMULATOR_PYTHON: is not set: enter the environment of the simulator with make shell" in launched.stderr


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
