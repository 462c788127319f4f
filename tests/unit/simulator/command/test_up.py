"""What `make shell STACK=<name>` selects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.command import cli, pulumi_cli
from simulator.host import paths

CLUSTER = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/ai-dev"


@pytest.mark.parametrize(("outputs", "context"), [({"clusterId": CLUSTER}, "ai-dev+ai-dev"), ({}, "")])
@pytest.mark.parametrize("command", ["shell", "env"])
def test_a_stack_is_selected_with_its_cluster_in_one_shell_alone(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outputs: dict[str, Any],
    context: str,
) -> None:
    """The kubeconfig and the selected stack, which other shells use too, stay as they are."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    shell = tmp_path / "sh"
    shell.write_text("#!/bin/sh\nexport -p\n")
    shell.chmod(0o755)
    monkeypatch.setenv("SHELL", str(shell))
    monkeypatch.setattr(cli, "start", lambda: None)
    ran: list[tuple[str, ...]] = []
    listed = [{"name": "organization/ai-on-aks/olmo", "current": True}]
    monkeypatch.setattr(pulumi_cli, "quiet", lambda *arguments: ran.append(arguments))
    monkeypatch.setattr(pulumi_cli, "read", lambda *asked, **_: listed if "ls" in asked else outputs)
    printed: list[str] = []
    run = subprocess.run

    def captured(arguments: list[str], **options: Any) -> Any:
        answer = run(arguments, **{**options, "capture_output": True, "text": True})
        printed.append(answer.stdout)
        return answer

    monkeypatch.setattr(subprocess, "run", captured)
    assert cli.main([command, "--stack", "dev"]) == 0
    told = capsys.readouterr()
    lines = "".join(printed) if command == "shell" else told.out
    own = tmp_path / "kubeconfigs" / "dev"
    assert ran == [("stack", "init", "dev", "--no-select")]
    assert re.search("^export PULUMI_STACK='?dev'?$", lines, re.M)
    assert re.search(f"^export KUBECONFIG='?{own}:{tmp_path}/kubeconfig'?$", lines, re.M)
    assert yaml.safe_load(own.read_text())["current-context"] == context
    assert not (tmp_path / "kubeconfig").exists()
    assert ("make up STACK=dev" in " ".join(told.err.split())) != bool(outputs)


def test_the_environment_of_an_unknown_stack_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["env", "--stack", "devv"]) == 1
    told = capsys.readouterr()
    assert (told.out, "there is no stack devv" in told.err) == ("", True)


def test_a_killed_pulumi_is_reported_with_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi = tmp_path / "pulumi"
    pulumi.write_text("#!/bin/sh\nkill -KILL $$\n")
    pulumi.chmod(0o755)
    monkeypatch.setattr(paths, "tool", lambda _: pulumi)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(pulumi_cli.PulumiFailed, match=r"^pulumi up was ended by signal 9 \(Killed\)") as raised:
        pulumi_cli.run("up")
    assert str(raised.value).endswith("Run the same make command again: it goes on from there.")
