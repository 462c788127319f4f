"""What `make shell STACK=<name>` selects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.command import pulumi_cli
from simulator.command.up import select

CLUSTER = "/subscriptions/s/resourceGroups/ai-dev/providers/Microsoft.ContainerService/managedClusters/ai-dev"
CONTEXTS = ["ai-x+ai-x", "ai-dev+ai-dev"]


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of two clusters. kubectl is replaced by a script that knows `config use-context` alone."""
    monkeypatch.setenv("SIMULATOR_HOME", str(tmp_path))
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({"current-context": CONTEXTS[0]}))
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "current-context: $3" > "$KUBECONFIG"; echo "Switched to context \\"$3\\"."\n')
    kubectl.chmod(0o755)
    monkeypatch.setattr("simulator.command.up.paths.tool", lambda _: kubectl)
    return file


@pytest.mark.parametrize(("outputs", "context"), [({"clusterId": CLUSTER}, CONTEXTS[1]), ({}, CONTEXTS[0])])
def test_a_stack_is_selected_with_its_cluster(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, outputs: dict[str, Any], context: str
) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(pulumi_cli, "quiet", lambda *arguments: ran.append(arguments))
    monkeypatch.setattr(pulumi_cli, "read", lambda *_: outputs)
    line = select("dev")
    assert ran == [("stack", "select", "--create", "dev")]
    assert yaml.safe_load(kubeconfig.read_text())["current-context"] == context
    assert ("Switched to context" in line) == bool(outputs)
    assert ("make up STACK=dev" in line) != bool(outputs)
