from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.command import cli, jobs, pulumi_cli, up
from simulator.command.diagnosed import Finding, Report
from simulator.host import paths

CLUSTER = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/ai-dev"


@pytest.mark.parametrize(("outputs", "context"), [({"clusterId": CLUSTER}, "ai-dev+ai-dev"), ({}, "")])
@pytest.mark.parametrize("command", ["shell", "env"])
def test_selects_a_stack_and_its_cluster_only_in_one_shell(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outputs: dict[str, Any],
    context: str,
) -> None:
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
    output = capsys.readouterr()
    lines = "".join(printed) if command == "shell" else output.out
    own = tmp_path / "kubeconfigs" / "dev"
    assert ran == [("stack", "init", "dev", "--no-select")]
    assert re.search("^export PULUMI_STACK='?dev'?$", lines, re.M)
    assert re.search(f"^export KUBECONFIG='?{own}:{tmp_path}/kubeconfig'?$", lines, re.M)
    assert yaml.safe_load(own.read_text())["current-context"] == context
    assert not (tmp_path / "kubeconfig").exists()  # other shells use it, too
    assert ("make up STACK=dev" in " ".join(output.err.split())) != bool(outputs)


@pytest.mark.parametrize(("name", "likely"), [("metasec", "metaseq"), ("devv", "dev"), ("xyz", "dev")])
def test_rejects_an_unknown_stack_and_suggests_a_similar_one(
    name: str, likely: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["env", "--stack", name]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert f"unknown stack {name}: Pulumi.{name}.yaml does not exist. The stacks are: av-resim, " in output.err
    assert f"  fix: make up STACK={likely}, or copy " in output.err


def test_a_killed_pulumi_is_reported_with_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi = tmp_path / "pulumi"
    pulumi.write_text("#!/bin/sh\nkill -KILL $$\n")
    pulumi.chmod(0o755)
    monkeypatch.setattr(paths, "tool", lambda _: pulumi)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(pulumi_cli.PulumiFailed, match=r"^pulumi up was ended by signal 9 \(Killed\)") as raised:
        pulumi_cli.run("up")
    assert str(raised.value).endswith("To continue, run the same make command again.")


def test_the_error_shows_a_shared_cause_once() -> None:
    cause = Finding("no GPUs", "  waits: no GPUs")
    reports = (Report(name, "Pending", "pending", f"{name}: Pending", "job", (cause,)) for name in ("a", "b"))
    workloads = [jobs.Workload(each.name, "ai", "logs", "why", ends=True, report=each) for each in reports]
    with pytest.raises(up.UpFailed) as raised:
        up._judge("dev", workloads)
    assert str(raised.value).splitlines() == [
        *("a: Pending", "  waits: no GPUs", "  look at it:   why"),
        *("b: Pending", "  waits: for the same reason as a", "  look at it:   why"),
        "Run these commands in: make shell STACK=dev",
    ]
